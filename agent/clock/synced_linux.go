package clock

import "golang.org/x/sys/unix"

// Synced reports whether the kernel considers this host's clock synchronised: a time service steers it, and did so
// recently (adjtimex(2), TIME_ERROR and STA_UNSYNC).
func Synced() bool {
	var t unix.Timex // no modes: it only reads
	state, err := unix.Adjtimex(&t)
	return err == nil && state != unix.TIME_ERROR && t.Status&unix.STA_UNSYNC == 0
}
