package wal

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"hwsagent/wal/queue"
)

// TestLabelsOfSeriesThatAreGone: while series come and go, and the numbers of their labels are used again, each *Series that a
// consumer keeps has its own labels, also after all readers have let it go; and once no consumer keeps one, no label is left.
func TestLabelsOfSeriesThatAreGone(t *testing.T) {
	log, err := Open(Options{Dir: t.TempDir(), SegmentBytes: 4 << 10})
	if err != nil {
		t.Fatal(err)
	}
	const commits, each = 300, 20
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { // what nothing can reach loses its numbers at once
		for {
			select {
			case <-done:
				return
			default:
				runtime.GC()
			}
		}
	})
	type kept struct {
		s  *Series
		id string
	}
	for n := range 3 {
		r, err := log.Reader(strconv.Itoa(n), ReaderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			defer r.Close()
			rnd := rand.New(rand.NewPCG(uint64(n), 0))
			var window [200]kept // in a place chosen at random, so some are kept for long
			gone := 0
			for last := uint64(0); last < commits; {
				e, err := r.Next(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				for _, s := range e.Samples {
					window[rnd.IntN(len(window))] = kept{s.Series, strconv.Itoa(int(s.V))}
				}
				for _, k := range window {
					if k.s == nil {
						continue
					}
					if k.s.Gone() {
						gone++
					}
					if got := k.s.Labels(); !labels.Equal(got, churning(k.id)) || k.s.Name() != "m"+k.id {
						t.Errorf("series %s, which is gone: %t, has the labels %s", k.id, k.s.Gone(), got)
						return
					}
				}
				r.Advance(e.End, queue.Outcome{Delivered: log.targets.get(strconv.Itoa(n)).undelivered(e.End)})
				last = e.End.Commit
			}
			if gone == 0 {
				t.Error("no series was gone")
			}
		})
	}
	for i := range commits {
		app := log.AppenderV2(t.Context())
		for k := range each {
			id := strconv.Itoa(i*each/2 + k) // half of them come back once
			if _, err := app.Append(0, churning(id), 0, int64(i), float64(i*each/2+k), nil, nil, storage.AppendV2Options{}); err != nil {
				t.Error(err)
			}
		}
		if err := app.Commit(); err != nil {
			t.Error(err)
		}
		log.series.mu.Lock()
		log.series.forgetLocked(func(s *Series) bool { return s.owner == nil && s.t < int64(i-2) })
		log.series.mu.Unlock()
	}
	log.series.mu.Lock()
	log.series.forgetLocked(func(*Series) bool { return true })
	log.series.mu.Unlock()
	close(done)
	wg.Wait()
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	y := log.series.symbols
	log = nil
	left := func() int {
		runtime.GC()
		y.mu.RLock()
		defer y.mu.RUnlock()
		return y.byText.Len()
	}
	for until := time.Now().Add(10 * time.Second); left() > 0 && time.Now().Before(until); {
		runtime.Gosched() // until the runtime has made the calls
	}
	if n := left(); n != 0 || y.byNumber.Len() != 0 {
		t.Errorf("%d labels are left, with numbers below %d", n, y.byNumber.Len())
	}
}

// churning are the labels of a series of TestLabelsOfSeriesThatAreGone.
func churning(id string) labels.Labels {
	return labels.FromStrings("__name__", "m"+id, "id", id, "job", "churn")
}

// TestSymbolsAgainstModel: label sets that are held and released at random keep their labels, equal ones are the same, and only
// announcements of their labels are theirs.
func TestSymbolsAgainstModel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	random := func() labels.Labels {
		b := labels.NewBuilder(labels.EmptyLabels())
		for range 1 + rnd.IntN(4) {
			value := fmt.Sprint(rnd.IntN(300))
			if rnd.IntN(10) == 0 {
				value = fmt.Sprintf("%0200s", value)
			}
			b.Set(fmt.Sprint("name", rnd.IntN(5)), value)
		}
		return b.Labels()
	}
	y := newSymbols()
	type holding struct {
		ls   labels.Labels
		uses int
	}
	held := map[packed]*holding{}
	for range 20_000 {
		ls := random()
		announced := appendAnnouncement(nil, ls)
		found, ok := y.find(nil, announced)
		if h := held[packed(found)]; ok && h != nil && !labels.Equal(h.ls, ls) {
			t.Fatalf("%s is found as %s", ls, h.ls)
		}
		p := y.hold(announced)
		if ok && string(found) != string(p) {
			t.Fatalf("%s is found as another set", ls)
		}
		if held[p] == nil {
			held[p] = &holding{ls: ls}
		}
		held[p].uses++
		if rnd.IntN(10) == 0 {
			y.keep(p)
			held[p].uses++
		}
		if most := y.byNumber.Len(); most > 400 {
			t.Fatalf("numbers reach %d, although unused ones are used again", most)
		}
		for p, h := range held {
			if !labels.Equal(labels.New(y.labels(nil, p)...), h.ls) || string(y.announce(nil, p)) != string(appendAnnouncement(nil, h.ls)) ||
				y.value(p, "name1") != h.ls.Get("name1") || y.is(p, announced) != labels.Equal(h.ls, ls) || p.size() != len(y.announce(nil, p)) {
				t.Fatalf("%s has become %v", h.ls, y.labels(nil, p))
			}
			for len(held) > 20 && h.uses > 0 {
				y.release(p)
				h.uses--
			}
			if h.uses == 0 {
				delete(held, p)
			}
		}
	}
	for p, h := range held {
		for range h.uses {
			y.release(p)
		}
	}
	if y.byText.Len() != 0 || y.byNumber.Len() != 0 {
		t.Errorf("%d labels are left, with numbers below %d", y.byText.Len(), y.byNumber.Len())
	}
}
