//go:build linux

package crashlab

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"hwsagent/internal/tools/results"
)

// mostWritten is how many bytes of a real file system a round of the agent may dirty, in pages of 4 KiB: its commit, a reservation,
// a record of the savepoint, and as much again for blocks that cross pages.
const mostWritten = 32 << 10

// TestQuietDisk counts what the kernel says an agent with 500 series writes, on ext4 and XFS. The kernel counts whole folios, so
// that 512 bytes in a file that was written at once can count as 256 KiB.
func TestQuietDisk(t *testing.T) {
	t.Parallel()
	endToEnd(t)
	for _, kind := range []string{"ext4", "xfs"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			d := newLoop(t, kind)
			l := newLab(t, options{storage: d.storage(), wal: "max_bytes: 16MiB, min_free_bytes: 1MiB", series: 500, interval: time.Second, scrape: time.Hour})
			l.run()
			l.acked(2) // the files are there and have their size
			first := l.journal()
			wrote := l.written()
			l.acked(10)
			rounds := len(l.journal().Acked) - len(first.Acked)
			each := (l.written() - wrote) / int64(rounds)
			results.Add(t, results.Line{What: "bytes written to " + kind + " a round of 500 series", Count: rounds, Figures: map[string]float64{"bytes": float64(each)}})
			t.Logf("%d rounds, %d bytes each", rounds, each)
			if each == 0 || each > mostWritten {
				t.Errorf("a round of 500 series wrote %d bytes to the disk, want at least a page and at most %d", each, mostWritten)
			}
			r, g := l.settle()
			l.sound(r, g)
			l.complete(r, g)
		})
	}
}

// written returns what the agent's process has caused to be written to disks, in bytes: write_bytes of proc_pid_io(5).
func (l *lab) written() (n int64) {
	l.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", l.cmd.Process.Pid))
	if err != nil {
		l.t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if _, err := fmt.Sscanf(line, "write_bytes: %d", &n); err == nil {
			return n
		}
	}
	l.t.Fatalf("no write_bytes in %q", b)
	return 0
}
