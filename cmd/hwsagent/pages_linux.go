package main

import (
	"bufio"
	"io"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// startTakes is how long after the start of the agent the pages of the program are released first: until then it reads
	// its configuration and the log, and most inputs have their first round.
	startTakes = 15 * time.Second

	// releaseEvery is the time between two releases after that.
	releaseEvery = 10 * time.Minute
)

// releaseProgram lets the kernel take the pages of the program file out of this process, soon after the start and then regularly,
// until the returned function is called. Most of them are needed only by the start, by a reload or by a person who looks.
// The kernel keeps them in its page cache, and maps a page again when the program needs it. The garbage of the start is
// released, too: afterwards so little arises that the next collection may be minutes away.
func releaseProgram() (stop func()) {
	var timer *time.Timer
	ready := make(chan struct{}) // closed when timer is set
	timer = time.AfterFunc(startTakes, func() {
		<-ready
		debug.FreeOSMemory()
		releasePages()
		timer.Reset(releaseEvery)
	})
	close(ready)
	return func() { timer.Stop() }
}

// releasePages releases the pages of all files that this process can only read. Where that fails, nothing is released.
func releasePages() {
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }() // it was only read
	for _, area := range releasable(f) {
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, area.from, area.to-area.from, unix.MADV_DONTNEED)
	}
}

// area is a part of the address space.
type area struct{ from, to uintptr }

// releasable returns the areas of a list like /proc/self/smaps whose pages the kernel can read from a file again. An area that may be
// written is none of them, nor is one that has anonymous pages: these have what is not in the file, such as the work of a loader or a debugger.
func releasable(smaps io.Reader) []area {
	var found []area
	var now area
	ofFile := false
	lines := bufio.NewScanner(smaps)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 2 {
			continue
		}
		if from, to, ok := addresses(fields[0]); ok {
			now = area{from, to}
			ofFile = len(fields) >= 6 && strings.HasPrefix(fields[1], "r-") && strings.HasPrefix(fields[5], "/")
		}
		if fields[0] == "Anonymous:" && fields[1] == "0" && ofFile {
			found = append(found, now)
		}
	}
	return found
}

// addresses reads the first field of an area's first line, as in 00400000-010cb000.
func addresses(field string) (from, to uintptr, ok bool) {
	first, second, ok := strings.Cut(field, "-")
	if !ok {
		return 0, 0, false
	}
	a, err1 := strconv.ParseUint(first, 16, 64)
	b, err2 := strconv.ParseUint(second, 16, 64)
	return uintptr(a), uintptr(b), err1 == nil && err2 == nil && a < b
}
