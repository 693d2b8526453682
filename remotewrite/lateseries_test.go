package remotewrite

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/remotewrite/client"
)

// TestOneLateSeriesAfterAnOutage: one series is late after another sender's sample, and in an outage in which no
// request arrives the answers to several rounds are lost: all samples of the other series are stored.
func TestOneLateSeriesAfterAnOutage(t *testing.T) {
	for _, series := range []int{5, 20, 60} {
		for late := range 5 {
			for _, rounds := range []int{1, 2, 3, 8} {
				t.Run(fmt.Sprintf("%d series, %d is late, %d rounds", series, late, rounds), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						down := false
						to := &fakeReceiver{oneValue: true, latency: time.Millisecond}
						to.script = func(fakeRequest) (client.Answer, bool) { return client.Answer{Err: errDown}, down }
						r := newRig(t, to)
						for range 5 {
							r.round(series)
						}
						r.start()
						r.drained(time.Minute)
						name := fmt.Sprintf("m%04d", late)
						to.plant(smp{name, r.time + 240_000, 1e6})
						for range 3 {
							r.round(series)
							time.Sleep(2 * time.Second)
						}
						to.set(func() { down = true })
						for range rounds {
							r.round(series)
						}
						time.Sleep(3 * time.Second)
						to.set(func() { down = false })
						r.drained(time.Minute)
						r.end()
						for _, e := range r.log.entries {
							for _, s := range e.Samples {
								if x := smpOf(s); !to.has[x] && x.series != name {
									t.Errorf("the receiver lacks %+v; outcomes %+v", x, r.log.outcome())
								}
							}
						}
						if o := r.log.outcome(); int(o.Lost()) != 3+rounds {
							t.Errorf("outcomes %+v, want %d lost\n%s", o, 3+rounds, to.dump())
						}
					})
				})
			}
		}
	}
}

// TestSeveralLateSeriesAfterAnOutage: three series are late; in an outage in which no request arrives the answers to
// several rounds are lost, and another sender stores newer samples of two of them. These three do not speak for the
// others, which are stored.
func TestSeveralLateSeriesAfterAnOutage(t *testing.T) {
	for late := range 5 {
		for _, series := range []int{8, 20, 60} {
			for _, rounds := range []int{1, 2, 3, 8} {
				t.Run(fmt.Sprintf("%d series, %d, 5 and 6 are late, %d rounds", series, late, rounds), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { severalLate(t, series, late, rounds) })
				})
			}
		}
	}
}

func severalLate(t *testing.T, series, late, rounds int) {
	down := false
	to := &fakeReceiver{oneValue: true, latency: time.Millisecond}
	to.script = func(fakeRequest) (client.Answer, bool) { return client.Answer{Err: errDown}, down }
	r := newRig(t, to)
	for range 5 {
		r.round(series)
	}
	r.start()
	r.drained(time.Minute)
	name := fmt.Sprintf("m%04d", late)
	to.plant(smp{name, r.time + 240_000, 1e6})
	for range 3 {
		r.round(series)
		time.Sleep(2 * time.Second)
	}
	to.set(func() { down = true })
	for range rounds {
		r.round(series)
	}
	to.plant(smp{"m0005", r.time, 1})
	to.plant(smp{"m0006", r.time, 1})
	time.Sleep(3 * time.Second)
	to.set(func() { down = false })
	r.drained(time.Minute)
	r.end()
	for _, e := range r.log.entries {
		for _, s := range e.Samples {
			if x := smpOf(s); !to.has[x] && x.series != name && x.series != "m0005" && x.series != "m0006" {
				t.Errorf("the receiver lacks %+v; outcomes %+v", x, r.log.outcome())
			}
		}
	}
}
