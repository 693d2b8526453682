package remotewrite

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/internal/tools/tier"
	"hwsagent/remotewrite/config"
)

// TestOneBadSampleOf10000: with one bad sample in 10,000, 9,999 are delivered and counted, within 64 extra requests,
// whatever the receiver does with a request that it refuses, by 400, 409 or 422.
func TestOneBadSampleOf10000(t *testing.T) {
	for _, version := range []string{config.MessageV1, config.MessageV2} {
		for _, kind := range []string{"stores nothing", "stores the good part", "stores everything"} {
			if kind == "stores everything" && version == config.MessageV2 {
				continue // and says that it has not written all: there is no such receiver
			}
			for _, batch := range []int{2000, 10_000} {
				for _, series := range []int{10_000, 1000, 100} {
					if !tier.Nightly() && (batch != 2000 || series != 1000) && (testing.Short() || batch != 10_000 || series != 100) {
						continue
					}
					for _, at := range []int{0, 4321, 9999} {
						for _, known := range []bool{false, true} { // whether empty writes pass
							t.Run(fmt.Sprintf("%s/%s/batches of %d/%d series/at %d/known=%t", version, kind, batch, series, at, known), func(t *testing.T) {
								synctest.Test(t, func(t *testing.T) {
									good := kind == "stores the good part"
									r := newRig(t, &fakeReceiver{keepsGood: good, keepsGood2: good, keepsAll: kind == "stores everything"})
									r.cfg.ProtobufMessage = version
									r.cfg.Queue.MaxSamplesPerSend = batch
									r.cfg.Queue.Capacity = 50_000
									r.to.refuses = map[int]int{0: 400, 4321: 409, 9999: 422}[at]
									oneBadSample(t, r, series, at, known)
								})
							})
						}
					}
				}
			}
		}
	}
}

func oneBadSample(t *testing.T, r *rig, series, at int, known bool) {
	const total = 10_000
	for range total / series {
		r.round(series)
	}
	bad := smpOf(r.log.entries[at/series].Samples[at%series])
	r.to.poison = func(s smp) bool { return s == bad }
	r.start()
	r.drained(time.Minute)
	r.end()
	o, ls := r.log.outcome(), r.letters.all()
	if o.GivenUp() != 1 || o.Delivered != total-1 || len(ls) != 1 {
		t.Errorf("outcomes %+v, %d letters", o, len(ls))
	}
	refused, extra, came := 0, 0, map[smp]bool{}
	for _, q := range r.to.log() {
		if q.status == r.to.refuses {
			refused++
		}
		fresh := false
		for _, s := range q.samples {
			fresh = fresh || !came[s]
			came[s] = true
		}
		if !fresh {
			extra++
		}
	}
	if refused == 0 || extra > 64 {
		t.Errorf("%d requests were refused, %d brought nothing new", refused, extra)
	}
	if r.to.keepsAll {
		r.verify()
		return
	}
	r.verify(bad)
}
