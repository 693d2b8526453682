package crashlab

import (
	words "encoding/binary"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// hideVDSO makes a program that stands at its first instruction ask the kernel for the
// time, where the tracer sees it, instead of reading it from the page that the kernel maps
// into it: it looks for that page in the auxiliary vector on its stack. (getauxval(3);
// System V ABI, "Initial Stack and Register State".)
func hideVDSO(pid int) error {
	var regs unix.PtraceRegs
	if err := unix.PtraceGetRegs(pid, &regs); err != nil {
		return err
	}
	at := uintptr(regs.Rsp)
	var word [8]byte
	next := func() (uint64, error) {
		if _, err := unix.PtracePeekData(pid, at, word[:]); err != nil {
			return 0, err
		}
		at += uintptr(len(word))
		return words.LittleEndian.Uint64(word[:]), nil
	}
	argc, err := next()
	if err != nil {
		return err
	}
	at += 8 * uintptr(argc+1) // the arguments and their end
	for {
		if env, err := next(); err != nil || env == 0 {
			if err != nil {
				return err
			}
			break
		}
	}
	const end, ignore, sysinfoEHDR = 0, 1, 33
	for {
		kind, err := next()
		switch {
		case err != nil:
			return err
		case kind == end:
			return fmt.Errorf("hide the vDSO: the program has none")
		case kind == sysinfoEHDR:
			_, err := unix.PtracePokeData(pid, at-8, words.LittleEndian.AppendUint64(nil, ignore))
			return err
		}
		at += 8
	}
}

// readClock moves what a call of clock_gettime has just returned.
func (t *tracer) readClock(tid int, s *shift) error {
	var regs unix.PtraceRegs
	if err := unix.PtraceGetRegs(tid, &regs); err != nil {
		return err
	}
	if regs.Orig_rax != unix.SYS_CLOCK_GETTIME || regs.Rax != 0 {
		return nil
	}
	switch regs.Rdi {
	case unix.CLOCK_REALTIME, unix.CLOCK_REALTIME_COARSE:
		if err := moveTime(tid, uintptr(regs.Rsi), s.Wall); err != nil || t.moved == s {
			return err
		}
		t.moved = s
		return t.events.Encode(tracerEvent{What: eventShifted, Count: s.Turn})
	case unix.CLOCK_BOOTTIME:
		return moveTime(tid, uintptr(regs.Rsi), s.Boot)
	}
	return nil
}

// moveTime moves a timespec of the program: seconds and nanoseconds.
func moveTime(tid int, at uintptr, by time.Duration) error {
	var ts [16]byte
	if _, err := unix.PtracePeekData(tid, at, ts[:]); err != nil {
		return err
	}
	sec, nsec := int64(words.LittleEndian.Uint64(ts[:])), int64(words.LittleEndian.Uint64(ts[8:]))
	moved := time.Unix(sec, nsec).Add(by)
	words.LittleEndian.PutUint64(ts[:], uint64(moved.Unix()))
	words.LittleEndian.PutUint64(ts[8:], uint64(moved.Nanosecond()))
	_, err := unix.PtracePokeData(tid, at, ts[:])
	return err
}
