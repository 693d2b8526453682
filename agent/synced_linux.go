package agent

import "golang.org/x/sys/unix"

// clockSynced reports whether the kernel considers this host's clock synchronised: a time service steers it, and did so
// recently (adjtimex(2), TIME_ERROR and STA_UNSYNC).
func clockSynced() bool {
	var t unix.Timex // no modes: it only reads
	state, err := unix.Adjtimex(&t)
	return err == nil && state != unix.TIME_ERROR && t.Status&unix.STA_UNSYNC == 0
}
