package wal

import (
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"strings"
	"syscall"
	"time"

	"hwsagent/wal/internal/disk"
)

// machine is a computer with a disk that holds both directories of a log. It runs one
// process at a time, and crashes in the middle of an operation of the disk.
//
// A life is deterministic although it has many goroutines: no two of them wake at the
// same nanosecond of the bubble, and who waits for the disk does so holding no mutex
// that another may want. (Who waits for a mutex keeps the bubble's clock from going on.)
type machine struct {
	rng             *rand.Rand
	segments, saves *memDir

	log    *Log      // that runs; nil while it is being opened
	booted time.Time // when log was opened
	always bool      // what sync is, but for the first moments
	slow   bool      // so is making savepoints durable; only if no commit waits for them

	fuse    fuse
	crashed chan struct{} // closed by the crash
	off     bool
	at      time.Time  // of the crash
	left    [2]*memDir // by the crash

	lingering bool // an fsync of the active segment runs
	saving    bool // one of a savepoint runs: its mutex is held
	callers   int  // how many others than the housekeeping make savepoints durable

	committing int // how many commits have begun and not returned

	forgets     bool          // a failed fsync of a segment drops what it could not write
	faulty      bool          // the disk fails now and then
	ending      bool          // the log is being closed, on a disk that is good
	brokenUntil time.Time     // until then operations may fail
	brokenErr   syscall.Errno // with that
	full        bool          // only what needs space fails then, and always
	fault       time.Time     // when one failed last
	unsynced    time.Time     // when an fsync of the segments failed last
	unread      time.Time     // when a read failed last while the log was being opened
	uncut       bool          // a truncation has failed in this process
	storm       *storm        // decides what fails; nil: the fields above do
	judging     bool          // the oracle reads: no read fails

	trace uint64    // of all that was noted, in any order
	out   io.Writer // gets the text to read; may be nil
	tally *tally
}

// fuse says when the machine crashes: at the n-th operation of that kind from now.
type fuse struct {
	power bool   // a power cut; if not, only the process ends
	dir   string // "" is both
	op    string // "" is any
	n     int
}

func newMachine(rng *rand.Rand) *machine {
	return &machine{rng: rng, segments: newMemDir(), saves: newMemDir(), tally: newTally()}
}

// boot makes the machine ready for a process, which the fuse will end.
func (m *machine) boot(f fuse) {
	m.log, m.off, m.fuse, m.crashed, m.lingering = nil, false, f, make(chan struct{}), false
	m.saving, m.callers, m.committing = false, 0, 0
	m.brokenUntil, m.uncut, m.ending = time.Time{}, false, false
	if m.storm != nil {
		m.storm.hits = 0
	}
	for name, d := range map[string]*memDir{segmentDir: m.segments, savepointDir: m.saves} {
		d.chance, d.forgets = m.rng, m.forgets && name == segmentDir
		d.fault = func(op string) (int, error) { return m.breaks(name, op) }
		if m.storm != nil {
			d.unreadable = func(string, int64) error {
				if m.judging {
					return nil
				}
				_, err := m.breaks(name, "read")
				return err
			}
		}
		d.linger = func(op string) { m.linger(name, op) }
		d.struck = func(op, file string) error { return m.struck(name, op, file) }
	}
}

func (m *machine) wrap(name string, real disk.Directory) disk.Directory {
	_ = real.Close()
	if name == segmentDir {
		return m.segments
	}
	return m.saves
}

// runs says that the log is open.
func (m *machine) runs(l *Log) {
	m.log, m.booted = l, time.Now()
}

// breaks is memDir.fault of that directory.
func (m *machine) breaks(dir, op string) (int, error) {
	// Not removals: a segment that stays while the one after it goes leaves a gap.
	if op == "remove" || !time.Now().Before(m.brokenUntil) {
		return 0, nil
	}
	if m.storm != nil {
		n, err := m.storm.breaks(m, dir, op)
		if err != nil {
			m.failed(dir, op)
		}
		return n, err
	}
	// Files of savepoints have their space before it is needed.
	needsSpace := op == "create" || op == "write" && (dir == segmentDir || m.saves.growing)
	if m.full && !needsSpace || !m.full && m.rng.IntN(3) == 0 {
		return 0, nil
	}
	m.failed(dir, op)
	return m.rng.IntN(3000), m.brokenErr
}

// failed notes that the disk fails that operation.
func (m *machine) failed(dir, op string) {
	m.fault = time.Now()
	if dir == segmentDir && (op == "sync" || op == "syncdir") {
		m.unsynced = m.fault
	}
	m.tally.Failed[op]++
	if op == "read" && m.log == nil {
		m.unread = m.fault
		m.tally.Failed["opening"]++
	}
	switch {
	case m.full:
		m.ended("full disk")
	case op == "sync":
		m.ended("failed fsync")
	case op == "write":
		m.ended("failed write")
	}
	m.note("fault in", op)
	m.uncut = m.uncut || op == "truncate"
	m.tally.Faults++
}

// save runs what makes a savepoint durable and is not the housekeeping.
func (m *machine) save(f func() error) error {
	m.callers++
	defer func() { m.callers-- }()
	return f()
}

// housekept is how long after it began the housekeeping may still be at it: some fsyncs
// that linger.
const housekept = 250 * time.Millisecond

// linger lets others have their turn during an fsync, if that can be.
func (m *machine) linger(dir, op string) {
	l := m.log
	if l == nil || m.off || op != "sync" {
		return
	}
	d := time.Duration(m.rng.Int64N(int64(40 * time.Millisecond)))
	switch {
	case dir == savepointDir:
		// No goroutine may wait for the target's mutex, because time would stand still. So calls outside
		// the housekeeping linger only if that does not run or begin meanwhile; and the housekeeping
		// does not linger while other calls are about to.
		since := time.Since(m.booted) % housekeeping
		if !m.slow || m.saving || d >= housekeeping-since || since < housekept && m.callers > 0 {
			return
		}
		m.saving = true
		time.Sleep(d)
		m.saving = false
	case l.writer.syncing && !m.lingering:
		// This is the one fsync without the writer's mutex.
		if m.faulty && m.storm == nil && l.writer.before != nil && m.rng.IntN(8) == 0 && !m.ending {
			m.full, m.brokenErr, m.brokenUntil = true, syscall.ENOSPC, time.Now().Add(500*time.Millisecond)
			if m.rng.IntN(2) == 0 {
				m.full, m.brokenErr = false, syscall.EIO
			}
		}
		m.lingering = true
		time.Sleep(d)
		m.lingering = false
		if m.committing > 0 && !m.always {
			m.ended("second end that waits")
		}
	}
}

// ended counts what has come, if a segment that has ended is being synced.
func (m *machine) ended(what string) {
	if l := m.log; l != nil && l.writer.before != nil && l.writer.syncing {
		m.tally.Ended[what]++
	}
}

// struck is memDir.struck.
func (m *machine) struck(dir, op, file string) error {
	if m.off {
		return errOff
	}
	m.note(dir, op, file)
	f := &m.fuse
	if f.dir != "" && f.dir != dir || f.op != "" && f.op != op {
		return nil
	}
	if f.n--; f.n != 0 {
		return nil
	}
	m.crash(dir + "/" + op)
	return errOff
}

// crash ends the process, in the middle of that.
func (m *machine) crash(where string) {
	m.off, m.at = true, time.Now()
	m.ended(map[bool]string{false: "kill", true: "power cut"}[m.fuse.power])
	kind := "kill in "
	m.left = [2]*memDir{m.segments.kill(), m.saves.kill()}
	if m.fuse.power {
		kind = "cut in "
		m.left = [2]*memDir{m.segments.cut(m.rng), m.saves.cut(m.rng)}
		m.tally.Torn += m.left[0].torn + m.left[1].torn
	}
	m.tally.Struck[kind+where]++
	m.segments.switchOff()
	m.saves.switchOff()
	m.note(kind, where)
	close(m.crashed)
}

// next is the disk as the next process finds it.
func (m *machine) next() {
	if !m.off {
		m.left = [2]*memDir{m.segments.kill(), m.saves.kill()}
	}
	m.segments, m.saves = m.left[0], m.left[1]
}

// note puts something into the trace, with the time.
func (m *machine) note(what ...string) {
	h := fnv.New64a()
	for _, s := range what {
		_, _ = h.Write(append([]byte(s), 0))
	}
	_, _ = h.Write(time.Now().AppendFormat(nil, time.RFC3339Nano))
	m.trace += h.Sum64()
	if m.out != nil {
		fmt.Fprintln(m.out, time.Now().Format("05.000000"), strings.Join(what, " "))
	}
}
