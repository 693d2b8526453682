package wal

import (
	"math"
	"math/rand/v2"
	"slices"
	"syscall"

	"hwsagent/wal/internal/segment"
)

// What goes wrong on a stage: the disk, the process, the power.

var stageErrors = map[string]syscall.Errno{"EIO": syscall.EIO, "ENOSPC": syscall.ENOSPC, "EROFS": syscall.EROFS, "EACCES": syscall.EACCES}

func (s *stage) fail(args []string, opt map[string]string) {
	f := &stageFault{op: args[0], err: syscall.EIO, left: math.MaxInt}
	if f.op == "fsync" {
		f.op = "sync"
	}
	s.must(slices.Contains([]string{"write", "sync", "syncdir", "create", "truncate", "remove"}, f.op), "fail OP")
	for k, v := range opt {
		switch k {
		case "times":
			f.left = s.number(v)
		case "bytes":
			f.short = s.number(v)
		case "error":
			f.err = stageErrors[v]
		}
	}
	s.must(f.err != 0, "fail OP error=EIO")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, f)
}

func (s *stage) heal([]string, map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.faults {
		if f.fired == 0 {
			s.Errorf("no %s has failed", f.op)
		}
	}
	s.faults = nil
}

// breaks is memDir.fault of the segments.
func (s *stage) breaks(op string) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.answer; op == "sync" && err != nil {
		s.answer = nil
		s.sayLocked("fsync failed: %v", err)
		return 0, err
	}
	for _, f := range s.faults {
		if f.op == op && f.left > 0 {
			f.left--
			f.fired++
			if op == "sync" {
				op = "fsync"
			}
			s.sayLocked("%s failed: %v", op, f.err)
			return f.short, f.err
		}
	}
	return 0, nil
}

func (s *stage) holdSync(args []string, _ map[string]string) {
	s.must(len(args) == 1 && args[0] == "fsync", "hold fsync")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hold = true
}

// holds reports whether the next fsync shall wait.
func (s *stage) holds() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hold
}

// struck is memDir.struck of the segments.
func (s *stage) struck(op, name string) error {
	if op != "sync" || !s.holds() {
		return nil
	}
	n, _ := segment.ParseName(name)
	answer := make(chan error)
	s.turn.Lock()
	s.mu.Lock()
	s.hold, s.held = false, answer
	s.sayLocked("fsync of segment %d waits", n)
	s.mu.Unlock()
	s.turn.Unlock()
	err := <-answer
	s.mu.Lock()
	s.answer = err
	s.mu.Unlock()
	return nil
}

// heldNow is where the fsync that waits is answered, once; nil if none waits. None that comes later does.
func (s *stage) heldNow() (held chan error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	held, s.held, s.hold = s.held, nil, false
	return held
}

func (s *stage) answerSync(args []string, _ map[string]string) {
	var err error
	known := len(args) == 0
	if !known {
		errno, ok := stageErrors[args[0]]
		err, known = errno, ok
	}
	held := s.heldNow()
	s.must(held != nil && known, "answer [ERRNO], while an fsync waits")
	held <- err
}

func (s *stage) kill([]string, map[string]string) { s.leave(s.segments.kill(), s.saves.kill()) }

func (s *stage) crash(_ []string, opt map[string]string) {
	keep := opt["keep"]
	switch keep {
	case "":
		s.leave(s.segments.crash(), s.saves.crash())
	case "all":
		s.leave(written(s.segments), written(s.saves))
	default:
		rng := rand.New(rand.NewPCG(uint64(s.number(keep)), 0))
		s.leave(s.segments.cut(rng), s.saves.cut(rng))
	}
}

// written is what is left after a power cut of a disk that had written everything.
func written(d *memDir) *memDir {
	left := newMemDir()
	for name, b := range contentsOf(d) {
		left.entries[name] = fresh(b)
		left.durable[name] = left.entries[name]
	}
	return left
}

// leave ends the process, if one runs, and has the next one find these directories.
func (s *stage) leave(segments, saves *memDir) {
	s.segments.switchOff()
	s.saves.switchOff()
	if held := s.heldNow(); held != nil {
		held <- errOff
	}
	s.mu.Lock()
	out := len(s.out)
	s.mu.Unlock()
	if s.log != nil {
		for _, r := range s.readers {
			_ = r.Close() // of a process that has ended
		}
		_ = s.log.Close()
	}
	clear(s.readers)
	s.mu.Lock()
	s.out, s.answer = s.out[:out], nil // what happens to a process that has ended is not heard
	s.mu.Unlock()
	s.log, s.segments, s.saves = nil, segments, saves
}

// damaged edits the file of a segment, and hands in the offsets between which a write stands.
func (s *stage) damaged(args []string, edit func(i *inode, from, to int)) {
	s.must(s.log == nil && len(args) >= 2, "flip or chop SEGMENT WRITE, when no process runs")
	n, write := s.number(args[0]), s.number(args[1])
	i := s.segments.entries[segment.Name(n)]
	writes, _ := s.scan(n)
	ends := commitEnds(s.T, n, i.data.bytes())
	for k, w := range writes {
		if w != write {
			continue
		}
		from := 0
		if k > 0 {
			from = int(ends[k-1])
		}
		edit(i, from, int(ends[k]))
		i.durable, i.changes = i.data.copy(), nil
		return
	}
	s.Fatalf("segment %d has no write %d", n, write)
}

func (s *stage) flip(args []string, _ map[string]string) {
	s.damaged(args, func(i *inode, from, _ int) {
		s.must(from > 0, "flip SEGMENT WRITE, not the first one")
		i.data.edit(func(b []byte) { b[from+12] ^= 1 })
	})
}

func (s *stage) chop(args []string, _ map[string]string) {
	more := 0
	if len(args) == 3 {
		more = s.number(args[2])
	}
	s.damaged(args, func(i *inode, _, to int) { i.data.truncate(to + more) })
}

func (s *stage) lose(args []string, _ map[string]string) {
	s.must(s.log == nil && len(args) == 1, "lose SEGMENT, when no process runs")
	name := segment.Name(s.number(args[0]))
	s.must(s.segments.entries[name] != nil, "lose SEGMENT, of one that is there")
	delete(s.segments.entries, name)
	delete(s.segments.durable, name)
}
