package wal

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb/record"

	"hwsagent/agent/inspect/stock"
	"hwsagent/wal/internal/disk"
	"hwsagent/wal/internal/segment"
	"hwsagent/wal/queue"
)

// stage is where a scene takes place: one computer with the disk of one log. Write n appends samples of time and value n.
type stage struct {
	*testing.T
	segments, saves *memDir
	options         Options
	log             *Log // nil: no process runs
	readers         map[string]*Reader
	writes          int // so far

	turn sync.Mutex // held during a write, and taken before mu: an fsync that waits says so after the answer of the write that led to it

	mu     sync.Mutex // guards what follows
	faults []*stageFault
	hold   bool       // the next fsync of a segment shall wait ...
	held   chan error // ... for its answer; nil: none waits
	answer error      // of the fsync that has waited
	out    []message  // since the last line of commands was printed
}

// message is something that is printed: a text, or acknowledged writes.
type message struct {
	text  string
	acked []int
}

// stageFault makes operations of one kind fail.
type stageFault struct {
	op    string // as of memDir.fault
	err   syscall.Errno
	short int // bytes that a failing write writes all the same
	left  int // how many operations still fail
	fired int
}

// The commands of a transcript. What is in brackets may be left out; N and S are numbers: of writes, of samples and of segments.
//
//	open [sync=always|DURATION] [segment=BYTES]   a process opens the log; the settings stay for later ones
//	target NAME [oldest]                          opens the end of the log of a target
//	write SAMPLES [times=N|until=S]               commits, once, N times or until the head is in segment S
//	begin write SAMPLES                           the same, and does not wait for it
//	wait DURATION                                 lets time pass
//	deliver NAME [N]                              N writes are delivered to a target, or all; "missing" is what it misses
//	reserve NAME                                  records that all may have been sent to a target
//	save                                          makes savepoints durable
//	account NAME                                  prints the target's ledger
//	fail OP [times=N] [error=ERRNO] [bytes=N]     operations on segments fail: write, fsync, syncdir, create, truncate, remove
//	heal                                          none does any more; each fault must have come
//	hold fsync / answer [ERRNO]                   the next fsync of a segment waits for its answer, an error or none
//	stock                                         prints which writes Prometheus' reader finds
//	always                                        from now on sync is always
//	kill                                          the process ends
//	crash [keep=all|SEED]                         the power fails; what was not durable is gone, stays, or does so in part
//	flip S WRITE / chop S WRITE [BYTES]           damages a write in a file; cuts a file off behind a write and so many bytes
//	lose S                                        takes a segment away, as a power cut does with one whose name was not durable
//	show                                          prints the head, and which writes each file has
func (s *stage) commands() map[string]func(args []string, opt map[string]string) {
	return map[string]func([]string, map[string]string){
		"open": s.open, "target": s.target, "write": s.write, "begin": s.begin, "wait": s.wait, "deliver": s.deliver, "reserve": s.reserve,
		"save": s.save, "account": s.account, "fail": s.fail, "heal": s.heal, "hold": s.holdSync, "answer": s.answerSync, "kill": s.kill,
		"always": s.always, "stock": s.stock, "crash": s.crash, "flip": s.flip, "chop": s.chop, "lose": s.lose, "show": s.show,
	}
}

func newStage(t *testing.T) *stage {
	s := &stage{T: t, segments: newMemDir(), saves: newMemDir(), readers: map[string]*Reader{}}
	s.options = memOptions(t, nil, nil)
	s.options.wrap = func(name string, real disk.Directory) disk.Directory {
		_ = real.Close()
		return map[string]disk.Directory{segmentDir: s.segments, savepointDir: s.saves}[name]
	}
	return s
}

// run runs one command.
func (s *stage) run(words []string) {
	s.Helper()
	var args []string
	opt := map[string]string{}
	for _, w := range words {
		if k, v, ok := strings.Cut(w, "="); ok {
			opt[k] = v
		} else {
			args = append(args, w)
		}
	}
	if len(args) == 0 || s.commands()[args[0]] == nil {
		s.Fatalf("no command: %q", words)
	}
	s.commands()[args[0]](args[1:], opt)
	synctest.Wait()
}

// end ends the process.
func (s *stage) end() {
	if s.log != nil {
		s.kill(nil, nil)
	}
	s.heal(nil, nil)
}

func (s *stage) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sayLocked(format, args...)
}

func (s *stage) sayLocked(format string, args ...any) {
	s.out = append(s.out, message{text: fmt.Sprintf(format, args...)})
}

// acknowledgedLocked adds a write to those that were acknowledged directly before.
func (s *stage) acknowledgedLocked(n int) {
	if last := len(s.out) - 1; last >= 0 && s.out[last].acked != nil {
		s.out[last].acked = append(s.out[last].acked, n)
		return
	}
	s.out = append(s.out, message{acked: []int{n}})
}

// printed is what was said since it was called last; what was said several times in a row stands there once.
func (s *stage) printed() (lines []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for from := 0; from < len(s.out); {
		m, to := s.out[from], from+1
		for to < len(s.out) && m.acked == nil && s.out[to].text == m.text {
			to++
		}
		switch {
		case m.acked != nil:
			m.text = "acknowledged " + ranges(m.acked)
		case to-from > 1:
			m.text += fmt.Sprintf(" (%d times)", to-from)
		}
		lines, from = append(lines, m.text), to
	}
	s.out = nil
	return lines
}

// ranges writes numbers as in "1-3 5".
func ranges(list []int) string {
	var words []string
	for from := 0; from < len(list); {
		to := from
		for to+1 < len(list) && list[to+1] == list[to]+1 {
			to++
		}
		word := strconv.Itoa(list[from])
		if to > from {
			word += "-" + strconv.Itoa(list[to])
		}
		words, from = append(words, word), to+1
	}
	if len(words) == 0 {
		return "nothing"
	}
	return strings.Join(words, " ")
}

func (s *stage) number(text string) int {
	s.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		s.Fatal(err)
	}
	return n
}

// must demands that a command had so many arguments.
func (s *stage) must(ok bool, usage string) {
	s.Helper()
	if !ok {
		s.Fatalf("usage: %s", usage)
	}
}

func (s *stage) open(_ []string, opt map[string]string) {
	s.must(s.log == nil, "open, when no process runs")
	if v, ok := opt["sync"]; ok {
		s.options.Sync = SyncAlways
		if d, err := time.ParseDuration(v); err == nil {
			s.options.Sync = d
		}
	}
	if v, ok := opt["segment"]; ok {
		s.options.SegmentBytes = int64(s.number(v))
	}
	s.segments.fault, s.segments.struck = s.breaks, s.struck
	l, err := Open(s.options)
	if err != nil {
		s.Fatal(err)
	}
	l.series.ref = 0x7a3c_91e7_4d15 // it is random otherwise, and so, now and then, is how many writes fit into a segment
	s.log = l
}

func (s *stage) always([]string, map[string]string) {
	o := s.options.Settings
	o.Sync = SyncAlways
	s.log.Reconfigure(o)
}

func (s *stage) target(args []string, _ map[string]string) {
	o := ReaderOptions{}
	if len(args) == 2 && args[1] == "oldest" {
		o.StartAt = StartOldest
	}
	r, err := s.log.Reader(args[0], o)
	if err != nil {
		s.Fatal(err)
	}
	s.readers[args[0]] = r
}

func (s *stage) write(args []string, opt map[string]string) {
	s.must(len(args) == 1, "write SAMPLES")
	if v, ok := opt["until"]; ok {
		for s.log.head().Segment < s.number(v) {
			s.write(args, nil)
		}
		return
	}
	times := 1
	if v, ok := opt["times"]; ok {
		times = s.number(v)
	}
	for range times {
		s.writes++
		s.turn.Lock()
		s.commit(s.log, s.number(args[0]), s.writes)
		s.turn.Unlock()
	}
}

// commit is one write to a log.
func (s *stage) commit(l *Log, samples, n int) {
	err := commitFloats(l, samples, int64(n), float64(n))
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.acknowledgedLocked(n)
	} else if !errors.Is(err, errOff) && !errors.Is(err, ErrClosed) {
		s.sayLocked("refused: %v", err)
	}
}

func (s *stage) begin(args []string, _ map[string]string) {
	s.must(len(args) == 2 && args[0] == "write", "begin write SAMPLES")
	s.writes++
	go s.commit(s.log, s.number(args[1]), s.writes)
}

func (s *stage) wait(args []string, _ map[string]string) {
	d, err := time.ParseDuration(args[0])
	if err != nil {
		s.Fatal(err)
	}
	time.Sleep(d)
}

// deliver says what a target is given.
func (s *stage) deliver(args []string, _ map[string]string) {
	r, n := s.readers[args[0]], 1<<30
	if len(args) == 2 {
		n = s.number(args[1])
	}
	var got []int
	var missing queue.Outcome
	for sp := r.Savepoint(); sp.Acked().Commit < s.log.head().Commit && len(got) < n; sp = r.Savepoint() {
		e := mustNext(s.T, r)
		if e.Count() > 0 {
			got = append(got, int(e.Samples[0].V))
		}
		o := e.Missing
		missing.Add(o)
		o.Delivered = e.Count()
		r.Advance(e.End, o)
	}
	text := fmt.Sprintf("%s gets %s", args[0], ranges(got))
	if missing != (queue.Outcome{}) {
		text += "; missing" + reasons(missing)
	}
	s.say("%s", text)
}

// reasons says what was dropped, and why.
func reasons(o queue.Outcome) (text string) {
	for why, n := range o.Dropped {
		if n > 0 {
			text += fmt.Sprintf(" %s=%d", queue.Reason(why), n)
		}
	}
	return text
}

func (s *stage) reserve(args []string, _ map[string]string) {
	if err := s.readers[args[0]].Reserve(s.log.head()); err != nil {
		s.say("reservation refused: %v", err)
	}
}

func (s *stage) save([]string, map[string]string) {
	if err := s.log.targets.save(); err != nil {
		s.say("savepoints refused: %v", err)
	}
}

func (s *stage) account(args []string, _ map[string]string) {
	g := s.readers[args[0]].Ledger()
	if !g.Balanced() {
		s.Errorf("the ledger does not add up: %+v", g)
	}
	s.say("%s: appended=%d delivered=%d%s pending=%d", args[0], g.Appended, g.Delivered, reasons(g.Outcome), g.Pending)
}

// show says what is on the disk.
func (s *stage) show([]string, map[string]string) {
	if s.log != nil {
		head := s.log.head()
		s.say("head: %d samples, in segment %d; durable: %d samples", head.Total, head.Segment, s.log.durable().Total)
	}
	for _, name := range slices.Sorted(maps.Keys(contentsOf(s.segments))) {
		if n, ok := segment.ParseName(name); ok {
			s.say("segment %d: %s", n, s.contents(n))
		}
	}
}

// contents says which writes a segment has.
func (s *stage) contents(n int) string {
	writes, damage := s.scan(n)
	if damage {
		return ranges(writes) + ", and damage"
	}
	return ranges(writes)
}

// scan is which writes a segment has. A commit without samples is no write.
func (s *stage) scan(n int) (writes []int, damage bool) {
	var c segment.Reader
	b := s.segments.entries[segment.Name(n)].data.bytes()
	c.Reset(strings.NewReader(string(b)), n, int64(len(b)), true)
	dec := record.NewDecoder(labels.NewSymbolTable(), slog.New(slog.DiscardHandler))
	for {
		what, err := c.Next()
		switch {
		case err != nil:
			s.Fatal(err)
		case what == segment.FoundNothing:
			return writes, damage
		case what == segment.FoundDebris:
			damage = true
		case what == segment.FoundCommit && c.Commit.Samples > 0:
			c.Good.Each(func(rec []byte) {
				if dec.Type(rec) == record.SamplesV2 {
					if list, err := dec.Samples(rec, nil); err == nil && len(list) > 0 {
						writes = append(writes, int(list[0].V))
					}
				}
			})
		}
	}
}

// stock says what Prometheus' reader makes of the files of the log.
func (s *stage) stock([]string, map[string]string) {
	r, err := stock.New(filesOf(s.segments))
	if err != nil {
		s.Fatal(err)
	}
	commits := stock.Commits{Reader: r, Log: stock.ID(s.log.head().Log)}
	var found []int
	for {
		c, err := commits.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			s.Fatal(err)
		}
		if len(c.Samples) > 0 {
			found = append(found, int(c.Samples[0].V))
		}
	}
	text := "Prometheus' reader finds " + ranges(found)
	for _, stop := range r.Stops() {
		text += fmt.Sprintf("; stops in segment %d", stop.Segment)
	}
	s.say("%s", text)
}
