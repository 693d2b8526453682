//go:build linux

package crashlab

import (
	"bytes"
	bigendian "encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"hwsagent/internal/tools/results"
	"hwsagent/internal/tools/tier"
)

// Bounds on the cost of a damaged log: the time until the agent is ready, and memory compared with the same agent on
// the same log undamaged.
const (
	startLimit  = 5 * time.Second
	memoryLimit = 64 << 10 // KiB

	// After the loss of a savepoint all of the log may have been sent before, and is sent
	// in requests of one sample a series: that takes more memory, however long the log is;
	// some 65 MiB, on a busy machine too.
	doubtLimit = 112 << 10
)

const logPage = 32 << 10

// logFiles are the files of a log that was left in the middle of an outage: five segments
// of 128 KiB, of which nothing is delivered.
type logFiles struct {
	files    map[string][]byte // by their path in the storage directory
	segments []string          // of these
	journal  []byte
	samples  uint64 // in the log
	memory   int    // that an agent takes to deliver it, KiB
}

const savepoint = "savepoints/records.0"

// savepointTwin is the other savepoint file. Damaging one of them has little effect, so tests damage both.
const savepointTwin = "savepoints/records.1"

func damagedOptions() options {
	return options{series: 3000, interval: 50 * time.Millisecond, wal: "max_bytes: 1MiB, min_free_bytes: 1MiB"}
}

// leaveLog lets an agent without a receiver collect until there are so many segments.
func leaveLog(t *testing.T, segments int) logFiles {
	t.Helper()
	l := newLab(t, damagedOptions())
	l.recv.Stop()
	l.run()
	eventually(t, time.Minute, func() string {
		if names, _ := filepath.Glob(filepath.Join(l.storage, "wal", "*")); len(names) < segments {
			return fmt.Sprintf("%d segments", len(names))
		}
		return ""
	})
	l.acked(20)
	l.terminate()
	f := logFiles{files: map[string][]byte{}, samples: l.offline().Targets[0].Ledger.Pending}
	err := filepath.WalkDir(l.storage, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		name, _ := filepath.Rel(l.storage, path)
		f.files[name], err = os.ReadFile(path)
		if strings.HasPrefix(name, "wal/") {
			f.segments = append(f.segments, name)
		}
		return err
	})
	if err == nil {
		f.journal, err = os.ReadFile(l.journalFile())
	}
	if err != nil || len(f.segments) < segments || f.samples == 0 || f.files[savepoint] == nil {
		t.Fatalf("%d segments, %d samples, %v", len(f.segments), f.samples, err)
	}
	slices.Sort(f.segments)
	return f
}

// harm is one damage.
type harm struct {
	what    string
	files   map[string][]byte // replaces files; nil contents remove one
	harmful bool              // something must be lost
	refused bool              // the agent must refuse to start
	doubt   bool              // what was sent before is not known any more
}

// damage returns the n-th damage.
func (f *logFiles) damage(rnd *rand.Rand, n int, foreign []byte) harm {
	name := f.segments[rnd.IntN(len(f.segments))]
	b := bytes.Clone(f.files[name])
	other := f.segments[rnd.IntN(len(f.segments))]
	page := func(b []byte) (int, []byte) {
		i := rnd.IntN((len(b) + logPage - 1) / logPage)
		return i, b[i*logPage : min((i+1)*logPage, len(b))]
	}
	one := func(what string, contents []byte, harmful bool) harm {
		return harm{what: what, files: map[string][]byte{name: contents}, harmful: harmful}
	}
	save := func(what string, contents []byte) harm {
		return harm{what: "savepoint " + what, files: map[string][]byte{savepoint: contents, savepointTwin: contents}, doubt: true}
	}
	switch n % 16 {
	case 0, 1:
		i := rnd.IntN(len(b))
		b[i] ^= byte(1 + rnd.IntN(255))
		return one(fmt.Sprintf("%s: byte %d flipped", name, i), b, false)
	case 2: // where it was written last
		name = f.segments[len(f.segments)-1]
		b = bytes.Clone(f.files[name])
		i := len(b) - 1 - rnd.IntN(min(2000, len(b)))
		b[i] ^= 0xff
		return one(fmt.Sprintf("%s: byte %d of %d flipped", name, i, len(b)), b, false)
	case 3:
		size := rnd.IntN(len(b))
		return one(fmt.Sprintf("%s: cut at %d of %d", name, size, len(b)), b[:size], true)
	case 4:
		i, p := page(b)
		clear(p)
		return one(fmt.Sprintf("%s: page %d zeroed", name, i), b, true)
	case 5:
		i, p := page(b)
		j, q := page(b)
		was := bytes.Clone(p)
		copy(p, q)
		copy(q, was)
		return one(fmt.Sprintf("%s: pages %d and %d swapped", name, i, j), b, false)
	case 6:
		i, p := page(b)
		j, q := page(f.files[other])
		copy(p, q)
		return one(fmt.Sprintf("%s: page %d is page %d of %s", name, i, j, other), b, false)
	case 7:
		for i := range b[:len(b)/2] {
			b[i] = byte(rnd.Uint32())
		}
		return one(name+": half of it garbage", b, true)
	case 8:
		return one(name+": gone", nil, true)
	case 9:
		return harm{what: name + " and " + other + " swapped", files: map[string][]byte{name: f.files[other], other: b}}
	case 10:
		return one(name+": of another log", foreign, true)
	case 11:
		return harm{what: "foreign files", files: map[string][]byte{
			"wal/README": []byte("hello"), "wal/00000001.bak": b, "savepoints/README": []byte("hello"), "wal/00000999": foreign,
		}}
	case 12:
		garbage := make([]byte, len(f.files[savepoint]))
		for i := range garbage {
			garbage[i] = byte(rnd.Uint32())
		}
		return save("garbage", garbage)
	case 13:
		return save("zeroed", make([]byte, len(f.files[savepoint])))
	case 14:
		return save("cut", f.files[savepoint][:rnd.IntN(1000)])
	}
	if n%32 < 16 {
		s := bytes.Clone(f.files[savepoint])
		s[2] = 0xff // the version; the checksum of a slot of 512 bytes covers all but itself
		castagnoli := crc32.MakeTable(crc32.Castagnoli)
		bigendian.BigEndian.PutUint32(s[28:], crc32.Update(crc32.Checksum(s[:28], castagnoli), castagnoli, s[32:512]))
		h := save("of a newer format", s)
		h.refused = true
		return h
	}
	// The first record is the header: 7 bytes of page format, its type, its version.
	b[8]++
	end := 7 + int(bigendian.BigEndian.Uint16(b[1:]))
	bigendian.BigEndian.PutUint32(b[3:], crc32.Checksum(b[7:end], crc32.MakeTable(crc32.Castagnoli)))
	h := one(name+": of a newer format", b, false)
	h.refused = true
	return h
}

// settled is what a life on a damaged log came to.
type settled struct {
	lost   uint64        // what the ledger says, which is what did not arrive
	start  time.Duration // until ready
	memory int           // VmHWM, KiB
}

// survive starts an agent on the log after the harm, lets it deliver everything that is
// left, and checks the account against what arrived.
func (f *logFiles) survive(t *testing.T, h harm) settled {
	t.Helper()
	l := newLab(t, damagedOptions())
	for name, b := range f.files {
		if changed, ok := h.files[name]; ok {
			b = changed
		}
		l.put(name, b)
	}
	for name, b := range h.files {
		l.put(name, b)
	}
	if err := os.WriteFile(l.journalFile(), f.journal, 0o600); err != nil {
		t.Fatal(err)
	}
	l.configure(false)
	l.inspects(h)
	began := time.Now()
	if h.refused {
		l.refuses(h)
		return settled{start: time.Since(began)}
	}
	l.run()
	s := settled{start: time.Since(began)}
	eventually(t, time.Minute, func() string {
		if g := l.target().Ledger; g.Pending > 0 {
			return fmt.Sprintf("%s: %d samples are pending", h.what, g.Pending)
		}
		return ""
	})
	r, g := l.oracle.Verify(l.journal(), l.series), l.target().Ledger
	s.lost, s.memory = g.Lost, l.peakMemory()
	// One sample may come twice: its repetition asks a target with a backlog whether it takes old samples.
	came := l.recv.Samples() - uint64(r.Duplicated)
	if g.Appended != f.samples || g.Delivered != came || g.Lost != f.samples-came || g.Dropped["damage"] != g.Lost {
		t.Errorf("%s: of %d samples %d arrived; the ledger is %+v", h.what, f.samples, came, g)
	}
	if r.Duplicated > 1 || r.OutOfOrder+r.Garbled+r.Ghosts != 0 || r.Missing > g.Lost {
		t.Errorf("%s: %+v, the ledger is %+v", h.what, r, g)
	}
	if h.harmful && g.Lost == 0 {
		t.Errorf("%s: nothing is lost: the damage did not take place", h.what)
	}
	limit := memoryLimit
	if h.doubt {
		limit = doubtLimit
	}
	if s.memory > f.memory+limit {
		t.Errorf("%s: %d KiB of memory, %d without damage: more than %d beside", h.what, s.memory, f.memory, limit)
	}
	l.terminate()
	if again := l.offline().Targets[0].Ledger; again.Lost != g.Lost || again.Delivered != g.Delivered || again.Pending != 0 {
		t.Errorf("%s: the ledger was %+v, and is %+v after the end", h.what, g, again)
	}
	return s
}

func (l *lab) put(name string, b []byte) {
	l.t.Helper()
	path := filepath.Join(l.storage, name)
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if b == nil && err == nil {
		_ = os.Remove(path) // it may not have been there
		return
	}
	if err == nil {
		err = os.WriteFile(path, b, 0o600)
	}
	if err != nil {
		l.t.Fatal(err)
	}
}

// inspects checks that `hwsagent wal inspect` shows the log, whatever is wrong with it.
func (l *lab) inspects(h harm) {
	l.t.Helper()
	const ok, damaged = 0, 6
	cmd := exec.Command(l.args[0], "wal", "inspect", "--json", "--storage.path", l.storage)
	out, err := cmd.Output()
	if code := cmd.ProcessState.ExitCode(); !json.Valid(out) || code != ok && code != damaged {
		l.t.Errorf("%s: inspect: exit code %d, %v\n%s", h.what, code, err, out)
	}
}

// refuses checks that the agent does not start, says why, and leaves the log alone.
func (l *lab) refuses(h harm) {
	l.t.Helper()
	l.launch()
	select {
	case <-l.done:
	case <-time.After(20 * time.Second):
		l.t.Fatalf("%s: the agent does not end", h.what)
	}
	if said := l.tail(10); l.cmd.ProcessState.Success() || !strings.Contains(said, "use a newer hwsagent") {
		l.t.Errorf("%s: %s\n%s", h.what, l.cmd.ProcessState, said)
	}
	for name, b := range h.files {
		if now, err := os.ReadFile(filepath.Join(l.storage, name)); err != nil || !bytes.Equal(now, b) {
			l.t.Errorf("%s: %s was changed, %v", h.what, name, err)
		}
	}
}

// peakMemory returns the most memory that the agent has had, in KiB.
func (l *lab) peakMemory() int {
	l.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", l.cmd.Process.Pid))
	if err != nil {
		l.t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(b), "VmHWM:")
	kib, err := strconv.Atoi(strings.Fields(after)[0])
	if err != nil {
		l.t.Fatal(err)
	}
	return kib
}

// TestDamage starts the agent on logs of which a part was flipped, cut off, zeroed, moved,
// exchanged or lost, or that a newer build wrote.
func TestDamage(t *testing.T) {
	t.Parallel()
	endToEnd(t)
	const seed = 5
	rnd := rand.New(rand.NewPCG(seed, 0))
	f, foreign := leaveLog(t, 5), leaveLog(t, 2)
	f.memory = 1 << 20 // not known yet
	whole := f.survive(t, harm{what: "no damage"})
	if whole.lost != 0 {
		t.Fatalf("%d samples of an undamaged log are lost", whole.lost)
	}
	f.memory = whole.memory
	count := amount(34, 300)
	var harms []harm
	for n := range count {
		harms = append(harms, f.damage(rnd, n, foreign.files[foreign.segments[0]]))
	}
	var mu sync.Mutex
	var worst settled
	harmed, doubted := 0, 0 // doubted is the memory after the loss of a savepoint
	t.Run("harm", func(t *testing.T) {
		for n, h := range harms {
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				t.Parallel()
				s := f.survive(t, h)
				t.Logf("%s: %d samples lost, ready after %s, %d KiB", h.what, s.lost, s.start, s.memory)
				mu.Lock()
				defer mu.Unlock()
				if s.lost > 0 {
					harmed++
				}
				worst.lost += s.lost
				worst.start = max(worst.start, s.start)
				if h.doubt {
					doubted = max(doubted, s.memory)
				} else {
					worst.memory = max(worst.memory, s.memory)
				}
			})
		}
	})
	t.Logf("%d damages, %d cost something; the slowest start took %s, %s without damage; at most %d KiB, %d after the loss of a savepoint, %d without damage",
		count, harmed, worst.start, whole.start, worst.memory, doubted, whole.memory)
	// Several agents start at once here: compare with the start on an undamaged log.
	if limit := max(startLimit, 3*whole.start); worst.start > tier.Within(limit) {
		t.Errorf("the slowest start took %s, the limit is %s", worst.start, limit)
	}
	if harmed < count/4 {
		t.Errorf("only %d of %d damages cost anything", harmed, count)
	}
	results.Add(t, results.Line{What: "a damaged log", Count: count, Lost: int(worst.lost), Seed: seed, Figures: map[string]float64{
		"samples_each": float64(f.samples), "start_seconds_max": worst.start.Seconds(),
		"rss_mib_max": float64(worst.memory) / 1024, "rss_mib_undamaged": float64(whole.memory) / 1024,
		"rss_mib_without_savepoint": float64(doubted) / 1024,
	}})
}
