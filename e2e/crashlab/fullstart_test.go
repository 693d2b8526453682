//go:build linux

package crashlab

import (
	"fmt"
	"testing"
	"time"
)

// TestStartOnAFullDisk starts the agent while its disk has no byte, or no inode, left: it sends what the log has. Neither
// the control socket nor the process ID in the lock file, nor savepoints that the disk has already, keep it from that.
func TestStartOnAFullDisk(t *testing.T) {
	t.Parallel()
	for _, on := range []struct{ kind, what string }{
		{"ext4", "bytes"}, {"ext4", "inodes"}, {"xfs", "bytes"}, {"btrfs", "bytes"}, {"tmpfs", "bytes"}, {"tmpfs", "inodes"},
	} {
		for name, killed := range map[string]bool{"kill": true, "stop": false} {
			t.Run(on.kind+","+on.what+","+name, func(t *testing.T) {
				t.Parallel()
				startOnAFullDisk(t, on.kind, on.what, killed)
			})
		}
	}
}

func startOnAFullDisk(t *testing.T, kind, what string, killed bool) {
	var d *disk
	fill := (*disk).fill
	if what == "inodes" {
		fill = (*disk).fillInodes
	}
	switch {
	case kind == "tmpfs":
		d = newMemory(t, "size=6m,nr_inodes=100")
	case what == "inodes":
		d = newLoop(t, kind, "-N", "100")
	default:
		d = newLoop(t, kind)
	}
	l := newLab(t, options{storage: d.storage(), wal: "max_bytes: 2MiB, min_free_bytes: 0"})
	l.run()
	l.arrived()
	l.away()
	l.acked(10)
	if killed {
		fill(d)
		l.crash()
	} else {
		l.terminate()
	}
	fill(d) // also what the end of the agent has freed
	if err := l.recv.Start(); err != nil {
		t.Fatal(err)
	}
	l.run()
	eventually(t, 20*time.Second, func() string {
		fill(d)
		tg, r := l.target(), l.oracle.Verify(l.journal(), l.series)
		if tg.Ledger.Pending > 0 || r.Missing > 0 {
			return fmt.Sprintf("the log is not sent: %d pending, %d of %d acknowledged samples have not arrived, %s %s", tg.Ledger.Pending, r.Missing, r.Appended, tg.State, tg.Why)
		}
		return ""
	})
	if l.status().WAL.Refused == 0 {
		t.Error("the log has refused nothing: the disk was not full")
	}
	d.empty()
	l.acked(3)
	r, g := l.settle()
	l.complete(r, g)
}
