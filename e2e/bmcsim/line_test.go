package bmcsim

import (
	"bytes"
	"net"
	"sync"
	"testing"
	"time"
)

// dialLine is QEMU's side: a connection to a controller on a line, which has said what it can do.
func dialLine(t *testing.T) (*Line, net.Conn) {
	t.Helper()
	l, err := ListenLine("127.0.0.1:0", NewMachine("", ""))
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(l.Run)
	t.Cleanup(func() { l.Close(); wg.Wait() })
	conn := connect(t, l)
	exchange(t, conn, soon, 0, 0xff, 1, 0xa1, 8, 0x1f, 0xa1)
	return l, conn
}

func connect(t *testing.T, l *Line) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", l.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// exchange sends bytes and returns what comes until the time is over or the end character has come n times.
func exchange(t *testing.T, conn net.Conn, limit time.Duration, n int, sent ...byte) []byte {
	t.Helper()
	if _, err := conn.Write(sent); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(limit)); err != nil {
		t.Fatal(err)
	}
	var got []byte
	buf := make([]byte, 1024)
	for bytes.Count(got, []byte{0xa0})+bytes.Count(got, []byte{0xa1}) < n {
		m, err := conn.Read(buf)
		if got = append(got, buf[:m]...); err != nil {
			break
		}
	}
	return got
}

// Get Device ID with the sequence number AAh, and its answer, written out by hand: 06 is network function 06h, 1C the answer's.
var (
	who    = []byte{0xaa, 0xba, 0x18, 0x01, 0x3d, 0xa0}
	itself = []byte{0xaa, 0xba, 0x1c, 0x01, 0, 0x20, 1, 9, 0x08, 0x02, 0x8f, 0x91, 0x12, 0, 1, 0, 0, 0, 0, 0, 0xd2, 0xa0}
)

// soon is ample for an answer that comes at once.
const soon = 5 * time.Second

func TestLineAnswers(t *testing.T) {
	_, conn := dialLine(t)
	for _, split := range []int{0, 1, 2, 5} { // a frame may come in parts
		exchange(t, conn, time.Millisecond, 0, who[:split]...)
		if got := exchange(t, conn, soon, 1, who[split:]...); !bytes.Equal(got, itself) {
			t.Errorf("the answer is % x, want % x", got, itself)
		}
	}
	wrong := bytes.Clone(who)
	wrong[4]++
	if got := exchange(t, conn, soon, 1, append(wrong, who...)...); !bytes.Equal(got, itself) {
		t.Errorf("a wrong checksum is answered: % x", got)
	}
	on := []byte{1, 0x18, 0x2e, 1, 0xb8, 0xa0}
	if got, want := exchange(t, conn, soon, 2, on...), []byte{1, 0x1c, 0x2e, 0, 0xb5, 0xa0, 0x05, 0xa1}; !bytes.Equal(got, want) {
		t.Errorf("interrupts are switched on by % x, want % x", got, want)
	}
}

func TestLineFaults(t *testing.T) {
	l, conn := dialLine(t)
	if got := exchange(t, conn, soon, 1, who...); !bytes.Equal(got, itself) {
		t.Fatalf("% x", got)
	}
	for _, tc := range []struct {
		fault Fault
		want  []byte
		n     int
	}{
		{Twice, append(bytes.Clone(itself), itself...), 2},
		{Stray, append(append(bytes.Clone(itself), itself...), append([]byte("\x00rubbish\xa0"), itself...)...), 4},
	} {
		l.Set(tc.fault)
		if got := exchange(t, conn, soon, tc.n, who...); !bytes.Equal(got, tc.want) {
			t.Errorf("fault %d: % x, want % x", tc.fault, got, tc.want)
		}
	}
	l.Set(Lies)
	if short, long := exchange(t, conn, soon, 1, who...), exchange(t, conn, soon, 1, who...); len(short) >= len(itself) || len(long) <= maxFrame/2 {
		t.Errorf("the lies have %d and %d bytes", len(short), len(long))
	}
	l.Set(Silent)
	if got := exchange(t, conn, 50*time.Millisecond, 1, who...); len(got) != 0 {
		t.Errorf("a silent one says % x", got)
	}
	l.Set(Late)
	if got := exchange(t, conn, 50*time.Millisecond, 1, who...); len(got) != 0 {
		t.Errorf("a late one says % x at once", got)
	}
	l.Set(Well)
	if got := exchange(t, conn, soon, 1); !bytes.Equal(got, itself) {
		t.Errorf("a late one says % x", got)
	}
	before := l.Counts()
	l.Set(Gone)
	if got := exchange(t, conn, soon, 1); len(got) != 0 {
		t.Errorf("one that is gone says % x", got)
	}
	again := connect(t, l)
	if got := exchange(t, again, soon, 1); len(got) != 0 {
		t.Errorf("one that is gone says % x", got)
	}
	l.Set(Well)
	if got := exchange(t, connect(t, l), soon, 1, who...); !bytes.Equal(got, itself) {
		t.Errorf("one that is back says % x", got)
	}
	if after := l.Counts(); before.Faults != 6 || after.Faults != 7 || after.Opened != 2 {
		t.Errorf("%+v, then %+v", before, after)
	}
}
