package watchdog

import (
	"context"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestLookNamesWhatRuns: a part is named, with a place in its code, by the goroutines that it
// started, and no longer when they have ended.
func TestLookNamesWhatRuns(t *testing.T) {
	const name = "target \"up\"\n}: \\ ünïcode"
	started, hang, ended := make(chan struct{}), make(chan struct{}), make(chan struct{}, 3)
	Do(t.Context(), name, func(context.Context) {
		for range 3 {
			go func() {
				waits(started, hang)
				ended <- struct{}{}
			}()
		}
	})
	for range 3 {
		<-started
	}
	r := Look()
	for _, p := range r.Parts {
		if p.Name != name {
			t.Errorf("nothing called %q runs", p.Name)
		}
		if p.Goroutines != 3 || !strings.HasPrefix(p.At, "internal/watchdog.waits, watchdog_test.go:") {
			t.Errorf("%+v", p)
		}
	}
	if len(r.Parts) != 1 || !strings.Contains(r.Stacks, "watchdog.waits") {
		t.Errorf("%d parts in\n%s", len(r.Parts), r.Stacks)
	}
	if got := r.Names(); !strings.HasPrefix(got, name+" (in internal/watchdog.waits") {
		t.Errorf("named as %q", got)
	}
	if got := r.Names(name); got != "" {
		t.Errorf("what is left out is named: %q", got)
	}
	close(hang)
	for range 3 {
		<-ended
	}
	for len(Look().Parts) > 0 { // the goroutines are about to end
	}
}

//go:noinline
func waits(started chan<- struct{}, hang <-chan struct{}) {
	started <- struct{}{}
	<-hang
}

// TestParseTakesAnything: a text that is no profile gives no part, and ends.
func TestParseTakesAnything(t *testing.T) {
	for _, text := range []string{"", "\n\n", "# labels: ", "# labels: {\"part\":", "1 @", "#\t\t", "1 @ 0x1\n# labels: {\"part\":\"x\"}\n#\t0x1\tmain.main+0x1\tmain.go:1"} {
		if got := parse(text); len(got) > 0 {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

// TestStacksOfThisProgramComeFirst: where the text is cut, stacks of libraries are missing, and none of
// this program.
func TestStacksOfThisProgramComeFirst(t *testing.T) {
	profile := "goroutine profile: total 3\n2 @ 0x1\n#\t0x1\tnet.read+0x1\tnet.go:1\n\n" +
		"1 @ 0x2\n# labels: {\"part\":\"x\"}\n#\t0x2\tsyscall.Read+0x1\tsyscall.go:1\n#\t0x3\thwsagent/wal.(*Log).Append+0x2\tlog.go:2\n\n" +
		"1 @ 0x4\n#\t0x4\thwsagent/internal/watchdog.Do+0x1\twatchdog.go:1\n\n"
	got := strings.Split(ownFirst(profile), "\n\n")
	if len(got) != 3 || !strings.Contains(got[0], "wal.(*Log).Append") || !strings.Contains(got[1], "net.read") || !strings.Contains(got[2], "watchdog.Do") {
		t.Errorf("%d stacks: %q", len(got), got)
	}
}
