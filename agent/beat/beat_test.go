package beat

import (
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestTicksComeTogether: whoever listens gets its ticks in its own period, and all of them at common moments.
func TestTicksComeTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(time.Second)
		start := time.Now()
		one, stop := b.Every(time.Second)
		defer stop()
		time.Sleep(300 * time.Millisecond)
		other, stopOther := b.Every(time.Second)
		defer stopOther()
		five, stopFive := b.Every(5 * time.Second)
		defer stopFive()
		seen := map[string][]time.Duration{}
		for time.Since(start) < 10500*time.Millisecond {
			select {
			case <-one:
				seen["one"] = append(seen["one"], time.Since(start))
			case <-other:
				seen["other"] = append(seen["other"], time.Since(start))
			case <-five:
				seen["five"] = append(seen["five"], time.Since(start))
			case <-time.After(600 * time.Millisecond):
			}
		}
		for name, want := range map[string]int{"one": 10, "other": 10, "five": 2} {
			if len(seen[name]) != want {
				t.Fatalf("%s got its ticks at %v, want %d", name, seen[name], want)
			}
			for i, at := range seen[name] {
				if at != time.Duration(i+1)*10*time.Second/time.Duration(want) {
					t.Errorf("%s: tick %d came after %s", name, i+1, at)
				}
			}
		}
	})
}

// TestTickOfAnotherPeriod: a period that is no multiple has ticks of its own.
func TestTickOfAnotherPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ticks, stop := New(time.Second).Every(1500 * time.Millisecond)
		defer stop()
		start := time.Now()
		for i := range 3 {
			<-ticks
			if at := time.Since(start); at != time.Duration(i+1)*1500*time.Millisecond {
				t.Errorf("tick %d came after %s", i+1, at)
			}
		}
	})
}

// TestBeatRests: without a listener there are no beats, and the next listener has them again.
func TestBeatRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(time.Second)
		for range 2 {
			ticks, stop := b.Every(time.Second)
			start := time.Now()
			<-ticks
			stop()
			if at := time.Since(start); at != time.Second {
				t.Errorf("the first tick came after %s", at)
			}
			before := b.count
			time.Sleep(90500 * time.Millisecond)
			if b.count != before || b.timer != nil {
				t.Errorf("%d beats without a listener", b.count-before)
			}
			select {
			case <-ticks:
				t.Error("a tick after the end")
			default:
			}
		}
	})
}

// TestLateListenerGetsOneTick: ticks that no listener takes do not pile up.
func TestLateListenerGetsOneTick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ticks, stop := New(time.Second).Every(time.Second)
		defer stop()
		time.Sleep(7500 * time.Millisecond)
		start := time.Now()
		<-ticks
		if at := time.Since(start); at != 0 {
			t.Errorf("the tick that waited came after %s", at)
		}
		<-ticks
		if at := time.Since(start); at != 500*time.Millisecond {
			t.Errorf("the next tick came after %s", at)
		}
	})
}
