package wal

import (
	"testing"
	"testing/synctest"
	"time"
)

// A start writes once more what may not be durable, and leaves alone what is: after a clean stop everything, after a kill what
// savepoints say.
func TestStartWritesWhatIsInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, saves := newMemDir(), newMemDir()
		l := openLog(t, memOptions(t, d, saves))
		if err := l.Enroll([]Enrolment{{Name: "a"}}); err != nil {
			t.Fatal(err)
		}
		open := func(what string, want int) {
			t.Helper()
			writes := 0
			d.struck = func(op, _ string) error {
				if op == "write" {
					writes++
				}
				return nil
			}
			if l = openLog(t, memOptions(t, d, saves)); writes != want {
				t.Errorf("after %s the start wrote %d times into segments, want %d", what, writes, want)
			}
			d.struck = nil
		}
		for v := range 9 {
			if err := commitFloats(l, 1000, int64(v), float64(v)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(3500 * time.Millisecond) // it is durable, and savepoints say so
		from := l.head().Offset
		if err := commitFloats(l, 3, 10, 10); err != nil {
			t.Fatal(err)
		}
		if to := l.head().Offset; from < 1<<13 || to-from > 4096 {
			t.Fatalf("the commit in doubt is from %d to %d", from, to)
		}
		d, saves = d.kill(), saves.kill()
		open("a kill", 1)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		open("a clean stop", 0)
	})
}
