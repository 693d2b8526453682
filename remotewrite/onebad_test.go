package remotewrite

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/internal/tools/tier"
	"hwsagent/remotewrite/config"
	"hwsagent/wal/queue"
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

// TestOneBadSampleOf2000: of a batch of 2,000 with one bad sample 1,999 are delivered, and there is one dead letter
// with the server's text, whatever the receiver does with the good part.
func TestOneBadSampleOf2000(t *testing.T) {
	for _, keeps := range []bool{false, true} {
		for _, series := range []int{2000, 200} { // one and ten samples of each series
			for _, at := range []int{0, 777, 1999} {
				t.Run(fmt.Sprintf("keepsGood=%v/series=%d/at=%d", keeps, series, at), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						r := newRig(t, &fakeReceiver{keepsGood: keeps})
						var bad smp
						for range 2000 / series {
							r.round(series)
						}
						e := r.log.entries[at/series].Samples[at%series]
						bad = smp{e.Series.Labels().Get("__name__"), e.T, e.V}
						r.to.poison = func(s smp) bool { return s == bad }
						r.start()
						r.drained(time.Minute)
						r.end()
						o := r.log.outcome()
						ls := r.letters.all()
						if keeps && series < 2000 && o.Dropped[queue.Unconfirmed] > 0 {
							// Which of the older samples was bad cannot be known there.
							if o.Delivered+o.Dropped[queue.Unconfirmed] != 2000 || len(ls) != 1 {
								t.Errorf("outcomes %+v, %d letters", o, len(ls))
							}
							r.verify(bad)
							return
						}
						if o.Dropped[queue.Rejected] != 1 || o.GivenUp() != 1 {
							t.Errorf("outcomes %+v, want one rejected", o)
						}
						want := fmt.Sprintf("bad sample %s@%d", bad.series, bad.t)
						if len(ls) != 1 || ls[0].Text != want || ls[0].Timestamp != bad.t || ls[0].Status != 400 {
							t.Errorf("letters %+v, want one that says %q", ls, want)
						}
						q := r.to.log()
						i := slices.IndexFunc(q, func(q fakeRequest) bool { return q.status == 400 })
						if i+1 == len(q) || !q[i+1].fresh || len(q[i+1].samples) != len(q[i].samples) || slices.ContainsFunc(slices.Delete(q, i+1, i+2), func(q fakeRequest) bool { return q.fresh }) {
							t.Errorf("a refused batch is to come once more, on a new connection\n%s", r.to.dump())
						}
						if n := r.to.count(); n > 1+64 {
							t.Errorf("%d extra requests, want at most 64\n%s", n-1, r.to.dump())
						}
						r.verify(bad)
					})
				})
			}
		}
	}
}
