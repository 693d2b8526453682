package mutate

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gosnmp/gosnmp"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/goleak"
	"golang.org/x/net/http2"
	"google.golang.org/protobuf/encoding/protodelim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func answer(rnd *rand.Rand) Answer {
	return Answer{Status: 200, Head: []Field{{"Content-Type", "text/plain; version=0.0.4"}}, Body: Of(Exposition(rnd, false))}
}

func request(rnd *rand.Rand) Request {
	return Request{Method: "POST", Path: "/w", Host: "127.0.0.1:1", Head: []Field{{"Content-Type", "text/plain"}}, Body: Of(Exposition(rnd, true))}
}

// protoMessage is {1: "abc", 2: {1: 150, 3: fixed64}, 4: fixed32}.
func protoMessage(*rand.Rand) []byte {
	return []byte{0x0a, 3, 'a', 'b', 'c', 0x12, 12, 0x08, 0x96, 0x01, 0x19, 1, 2, 3, 4, 5, 6, 7, 8, 0x25, 1, 2, 3, 4}
}

// packet returns an answer of SNMP.
func packet(*rand.Rand) []byte {
	b, err := (&gosnmp.SnmpPacket{Version: gosnmp.Version2c, Community: "public", PDUType: gosnmp.GetResponse, RequestID: 7, Variables: []gosnmp.SnmpPDU{{Name: ".1.3.6.1.2.1.1.3.0", Type: gosnmp.TimeTicks, Value: uint32(4711)}}}).MarshalMsg()
	if err != nil {
		panic(err)
	}
	return b
}

// kinds returns all that the package has.
func kinds() map[string][]Kind {
	json := []byte(`[{"targets":["127.0.0.1:1"],"labels":{"a":"b"}}]`)
	lift := func(all []Content) []Kind { return answer(rand.New(rand.NewPCG(0, 0))).With(all, true) }
	return map[string][]Kind{
		"text": lift(Expositions(false)), "OpenMetrics": lift(Expositions(true)), "protobuf": lift(Protobuf(protoMessage)), "families": lift(AllFamilies()), "BER": lift(BER(packet)),
		"targets": lift(Targets(json)), "tokens": lift(Tokens([]byte(`{"access_token":"t","expires_in":2}`))),
		"answers": Answers(answer), "requests": Requests(request),
		"answer frames":  HTTP2(nil, 3, func(rnd *rand.Rand) []Frame { return answer(rnd).Frames(3) }),
		"request frames": HTTP2([]Step{Preface()}, 1, func(rnd *rand.Rand) []Frame { return request(rnd).Frames() }),
	}
}

// The same numbers make the same script, other numbers mostly another one, and no script takes
// much memory.
func TestKindsAreRepeatable(t *testing.T) {
	if testing.Short() {
		t.Skip("left out with -short: one goroutine, of which the race detector has nothing to say")
	}
	const most = 8 << 20
	for class, all := range kinds() {
		names := map[string]bool{}
		for _, k := range all {
			if names[k.Name] {
				t.Errorf("%s: two kinds are called %q", class, k.Name)
			}
			names[k.Name] = true
			began := time.Now()
			for seed := uint64(0); seed < 20 && (seed == 0 || time.Since(began) < 10*time.Millisecond); seed++ {
				make := func() (text string, size int) {
					s := k.Make(rand.New(rand.NewPCG(seed, 1)))
					var b strings.Builder
					fmt.Fprint(&b, s.End)
					for _, step := range s.Steps {
						size += len(step.Bytes)
						fmt.Fprintf(&b, " %d %d %s", step.Times, step.Pause, step.Bytes)
					}
					return b.String(), size
				}
				one, size := make()
				two, _ := make()
				if one != two {
					t.Errorf("%s: %s, seed %d: not the same twice", class, k.Name, seed)
				}
				if size > most {
					t.Errorf("%s: %s, seed %d: %d bytes in memory", class, k.Name, seed, size)
				}
			}
		}
		t.Logf("%s: %d kinds", class, len(all))
	}
}

// Correct messages can be parsed, so that wrong ones are wrong only by their mutation.
func TestRightMessages(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	for _, a := range []Answer{answer(rnd), answer(rnd).Gzipped()} {
		resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(flatten(a.Script()))), nil)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(resp.Body); err != nil || !bytes.Equal(body, a.Body.Bytes()) {
			t.Errorf("the body is %q, %v", body, err)
		}
		resp.Body.Close()
	}
	req, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(flatten(request(rnd).Script()))))
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(req.Body); err != nil || len(body) == 0 {
		t.Errorf("the body is %q, %v", body, err)
	}
	var data []byte
	fr := http2.NewFramer(io.Discard, bytes.NewReader(flatten(Script{Steps: steps(request(rand.New(rand.NewPCG(1, 1))).Frames()...)})))
	for {
		f, err := fr.ReadFrame()
		if err != nil {
			break
		}
		if d, ok := f.(*http2.DataFrame); ok {
			data = append(data, d.Data()...)
		}
	}
	if want := request(rand.New(rand.NewPCG(1, 1))).Body.Bytes(); !bytes.Equal(data, want) {
		t.Errorf("the frames hold %q, want %q", data, want)
	}
}

// The families are those that a reader of protobuf reads, and the long label is one label.
func TestFamilies(t *testing.T) {
	read := func(b []byte) (names []string, longest int) {
		in := bufio.NewReader(bytes.NewReader(b))
		for {
			var f dto.MetricFamily
			err := protodelim.UnmarshalOptions{MaxSize: -1}.UnmarshalFrom(in, &f)
			if errors.Is(err, io.EOF) {
				return names, longest
			}
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, f.GetName())
			for _, m := range f.Metric {
				for _, l := range m.Label {
					longest = max(longest, len(l.GetValue()))
				}
			}
		}
	}
	if names, _ := read(Families(rand.New(rand.NewPCG(1, 1)))); len(names) != 4 {
		t.Errorf("it has the families %v", names)
	}
	all := AllFamilies()
	long := all[slices.IndexFunc(all, func(c Content) bool { return c.Name == "a label of 17 MB" })]
	if names, longest := read(long.Make(nil).Bytes()); len(names) != 1 || longest != longLabel {
		t.Errorf("the label has %d bytes, want %d", longest, longLabel)
	}
}

// A tree that is parsed and written is the same.
func TestTreesRoundTrip(t *testing.T) {
	for name, c := range map[string]struct {
		g    grammar
		b    []byte
		deep int // elements
	}{"protobuf": {protobuf{}, protoMessage(nil), 4}, "BER": {ber{}, packet(nil), 11}} {
		root := c.g.parse(c.b, maxTree)
		if n := len(flat(root)); n < c.deep {
			t.Errorf("%s: %d elements of %x, want at least %d", name, n, c.b, c.deep)
		}
		out := encode(c.g, root)
		if again := c.g.parse(out, maxTree); len(flat(again)) != len(flat(root)) || name == "protobuf" && !bytes.Equal(out, c.b) {
			t.Errorf("%s: %x became %x", name, c.b, out)
		}
	}
}

// The inputs that have stopped an agent are among those that are made.
func TestKnownInputs(t *testing.T) {
	made := func(class, kind string, seeds uint64, is func(s Script) bool) {
		t.Helper()
		all := kinds()[class]
		i := slices.IndexFunc(all, func(k Kind) bool { return k.Name == kind })
		if i < 0 {
			t.Fatalf("%s: no kind is called %q", class, kind)
		}
		for seed := range seeds {
			if is(all[i].Make(rand.New(rand.NewPCG(seed, 1)))) {
				return
			}
		}
		t.Errorf("%s: %s makes no such input in %d tries", class, kind, seeds)
	}
	made("OpenMetrics", "content: an exemplar that does not end, after a counter", 100, func(s Script) bool {
		return bytes.HasSuffix(flatten(s), []byte("# TYPE a counter\na_total 1\na_total 2 # {a=7\n# EOF\n"))
	})
	made("text", "content: a label of 17 MB", 10, func(s Script) bool { return s.Len() > 1<<24 })
	made("targets", "content: a label of 17 MB in a list", 10, func(s Script) bool { return s.Len() > 1<<24 })
	made("answers", "101, the connection stays open", 1, func(s Script) bool {
		return s.End == Hold && bytes.HasPrefix(flatten(s), []byte("HTTP/1.1 101 "))
	})
	made("answer frames", "GOAWAY instead of an answer", 100, func(s Script) bool {
		return bytes.Equal(flatten(s), []byte{0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	})
}

// Play ends when the other side has gone, and says whether the connection can be used again.
func TestPlay(t *testing.T) {
	for name, c := range map[string]struct {
		s    Script
		good bool
		read string // what the other side gets before it goes
	}{
		"right":   {Script{Steps: []Step{write("a"), {Bytes: []byte("b"), Times: 3}}}, true, "abbb"},
		"closed":  {Script{Steps: []Step{write("a")}, End: Close}, false, "a"},
		"reset":   {Script{Steps: []Step{write("a")}, End: Reset}, false, "a"},
		"held":    {Script{Steps: []Step{write("a")}, End: Hold}, false, "a"},
		"half":    {Script{Steps: []Step{write("a")}, End: HalfClose}, false, "a"},
		"endless": {Script{Steps: []Step{{Bytes: []byte("a"), Times: Endless, Pause: time.Millisecond}}}, false, "aaa"},
		"raw":     {Script{Steps: []Step{{Bytes: []byte("a"), Raw: true}}}, true, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			ended := make(chan bool)
			go func() {
				conn, err := l.Accept()
				if err != nil {
					t.Error(err)
				}
				good := c.s.Play(Conn{conn, conn.(*net.TCPConn)})
				conn.Close()
				ended <- good
			}()
			conn, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				if name == "reset" { // before this side knew that it was connected
					<-ended
					return
				}
				t.Fatal(err)
			}
			got := make([]byte, len(c.read))
			if _, err := io.ReadFull(conn, got); err != nil && name != "reset" || err == nil && string(got) != c.read {
				t.Errorf("got %q %v, want %q", got, err, c.read)
			}
			conn.Close()
			select {
			case good := <-ended:
				if good != c.good {
					t.Errorf("it can be used again: %t, want %t", good, c.good)
				}
			case <-time.After(20 * time.Second):
				t.Fatal("it does not end")
			}
		})
	}
}
