package wal

import (
	"context"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/storage"

	"hwsagent/agent/inspect/stock"
	"hwsagent/wal/queue"
)

// endings is a log with readers while series come, go and come back.
type endings struct {
	*testing.T
	rnd     *rand.Rand
	o       Options
	log     *Log
	dir     *memDir
	time    int64
	open    []*openBatch
	refs    map[int]storage.SeriesRef // of the present process
	readers [3]*Reader
	at      [3]uint64

	commits map[uint64][]string // by number: the samples
	ended   int                 // series whose end readers were told
	again   int                 // commits that a reader got again
}

type openBatch struct {
	app  storage.AppenderV2
	want []string
}

// TestEndsLoseNothing: readers that release series when the log forgets them get the samples, with the labels, that Prometheus' reader
// finds, which keeps all series of a segment; through batches that are open meanwhile, series that come back, readers that begin again,
// release their memory and are opened again, and restarts of the log.
func TestEndsLoseNothing(t *testing.T) {
	seed := testSeed(t)
	ended, again := 0, 0
	for i := range uint64(30) {
		c := endings{T: t, rnd: rand.New(rand.NewPCG(seed, i)), dir: newMemDir(), commits: map[uint64][]string{}}
		c.o = memOptions(t, c.dir, newMemDir())
		c.o.SegmentBytes = []int64{2000, 20_000, 1 << 20}[i%3]
		for range 3 {
			c.process()
		}
		c.compareStock()
		ended, again = ended+c.ended, again+c.again
		if t.Failed() {
			t.Fatalf("in life %d", i)
		}
	}
	if ended < 1000 || again < 100 {
		t.Errorf("the ends of %d series were read, and %d commits again", ended, again)
	}
}

// process lets one process use the log.
func (c *endings) process() {
	var err error
	if c.log, err = Open(c.o); err != nil {
		c.Fatal(err)
	}
	c.refs, c.open = map[int]storage.SeriesRef{}, nil
	for k := range c.readers {
		c.openReader(k)
	}
	for range 150 {
		c.step()
	}
	for len(c.open) > 0 {
		c.commit(0)
	}
	for k, r := range c.readers {
		c.read(k, math.MaxInt)
		if err := r.Close(); err != nil {
			c.Error(err)
		}
	}
	if n, all := c.log.series.held(), c.log.series.byHash.Len(); n != 0 || all != c.log.series.size() {
		c.Errorf("%d series are held, %d are left of %d that the appender has", n, all, c.log.series.size())
	}
	if err := c.log.Close(); err != nil {
		c.Error(err)
	}
}

func (c *endings) openReader(k int) {
	r, err := c.log.Reader(strconv.Itoa(k), ReaderOptions{StartAt: StartOldest})
	if err != nil {
		c.Fatal(err)
	}
	sp := r.Savepoint()
	c.readers[k], c.at[k] = r, sp.Acked().Commit
}

// step does one thing.
func (c *endings) step() {
	k := c.rnd.IntN(len(c.readers))
	r := c.readers[k]
	switch c.rnd.IntN(24) {
	case 0:
		c.log.series.mu.Lock()
		by := 2 + c.rnd.Uint64N(3)
		c.log.series.forgetLocked(func(s *Series) bool { return s.ref%by == 0 })
		c.log.series.mu.Unlock()
	case 1:
		c.log.series.mu.Lock()
		c.log.series.forgetLocked(func(*Series) bool { return true })
		c.log.series.mu.Unlock()
	case 2:
		r.Rewind()
		reach, _ := r.Reach()
		c.at[k] = reach.Acked.Commit
	case 3, 4:
		r.Release()
	case 5:
		if err := r.Close(); err != nil {
			c.Error(err)
		}
		c.openReader(k)
	case 6, 7, 8, 9:
		if len(c.open) > 0 {
			c.commit(c.rnd.IntN(len(c.open)))
		}
	case 10, 11, 12, 13, 14:
		c.read(k, c.rnd.IntN(10))
	default:
		c.append()
	}
}

// append begins a batch.
func (c *endings) append() {
	b := &openBatch{app: c.log.AppenderV2(context.Background())}
	c.time++
	for range 1 + c.rnd.IntN(30) {
		n := int(c.time)/20 + c.rnd.IntN(40) // the numbers of live series move
		o := storage.AppendV2Options{Metadata: metadata.Metadata{Type: "gauge", Help: strconv.Itoa(c.rnd.IntN(2))}}
		ref, err := b.app.Append(c.refs[n], numbered(n), 0, c.time, float64(n), nil, nil, o)
		if err != nil {
			c.Fatal(err)
		}
		c.refs[n] = ref
		b.want = append(b.want, shownSample(numbered(n), c.time, float64(n)))
	}
	slices.Sort(b.want)
	b.want = slices.Compact(b.want) // what is repeated is logged once
	c.open = append(c.open, b)
}

// commit commits an open batch.
func (c *endings) commit(i int) {
	b := c.open[i]
	c.open = slices.Delete(c.open, i, i+1)
	if err := b.app.Commit(); err != nil {
		c.Fatal(err)
	}
	c.commits[c.log.head().Commit] = b.want
}

// read reads up to so many commits, and compares each.
func (c *endings) read(k, most int) {
	for r := c.readers[k]; most > 0 && c.at[k] < c.log.head().Commit; most-- {
		e := nextEntry(c.T, r)
		var got []string
		for _, s := range e.Samples {
			got = append(got, shownSample(s.Series.Labels(), s.T, s.V))
		}
		if c.at[k] >= e.End.Commit {
			c.again++
		}
		c.at[k] = e.End.Commit
		c.ended += len(e.Ended)
		c.compare(e.End.Commit, got)
		if e.Missing.Sum() > 0 {
			c.Errorf("commit %d misses %+v", e.End.Commit, e.Missing)
		}
		if c.rnd.IntN(3) > 0 {
			sp := r.Savepoint()
			r.Advance(e.End, queue.Outcome{Delivered: e.End.Total - sp.Acked().Total})
		} else {
			c.again++
		}
	}
}

func (c *endings) compare(commit uint64, got []string) {
	c.Helper()
	slices.Sort(got)
	if d := cmp.Diff(c.commits[commit], got); d != "" {
		c.Errorf("commit %d (-want +got):\n%s", commit, d)
	}
}

// compareStock compares what Prometheus' reader finds.
func (c *endings) compareStock() {
	r, err := stock.New(filesOf(c.dir))
	if err != nil {
		c.Fatal(err)
	}
	read := 0
	for commits := (stock.Commits{Reader: r, Log: stock.ID(c.log.head().Log)}); ; {
		e, err := commits.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || e.Unannounced > 0 {
			c.Fatalf("%v, %v", e, err)
		}
		if len(e.Samples) == 0 {
			continue
		}
		var got []string
		for _, s := range e.Samples {
			got = append(got, shownSample(s.Series.Labels, s.T, s.V))
		}
		read++
		c.compare(e.Commit.Number, got)
	}
	if read != len(c.commits) || len(r.Stops()) > 0 {
		c.Errorf("Prometheus' reader finds %d of %d commits, and stops at %v", read, len(c.commits), r.Stops())
	}
}

// shownSample is a sample as text.
func shownSample(ls labels.Labels, t int64, v float64) string {
	return ls.String() + " " + strconv.FormatInt(t, 10) + " " + strconv.FormatFloat(v, 'g', -1, 64)
}
