package scrape

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
)

var errFull = errors.New("log is full")

// memory is a log in memory that refuses commits and series on request.
type memory struct {
	mu      sync.Mutex
	full    bool
	commits [][]sample
	refused int // commits
	refs    map[string]storage.SeriesRef
	labels  map[storage.SeriesRef]labels.Labels
	newest  map[string]int64
	jobs    map[string]bool   // that something was asked for
	dropped int               // that relabelling removed of what was committed
	last    storage.SeriesRef // that was given
	most    int               // series that it takes at a time; 0 is no limit
	broken  string            // panics: at this series, or at each "commit"
}

type sample struct {
	series    string
	family    string
	t         int64
	v         float64
	stale     bool
	exemplars int
}

func newMemory() *memory {
	return &memory{refs: map[string]storage.SeriesRef{}, labels: map[storage.SeriesRef]labels.Labels{}, newest: map[string]int64{}, jobs: map[string]bool{}}
}

func (m *memory) out(job string, _ time.Duration) storage.AppendableV2 {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.jobs[job] = true
	return m
}

func (m *memory) AppenderV2(context.Context) storage.AppenderV2 { return &batch{m: m} }

func (m *memory) plant(broken string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.broken = broken
}

func (m *memory) fill(full bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.full = full
}

// all are the samples of a series, oldest commit first.
func (m *memory) all(series string) (found []sample) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.commits {
		for _, s := range c {
			if s.series == series {
				found = append(found, s)
			}
		}
	}
	return found
}

// forget forgets all series, as the log does when they are idle.
func (m *memory) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.refs)
	clear(m.labels)
}

// committed is how many batches there were so far.
func (m *memory) committed() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.commits)
}

type batch struct {
	m       *memory
	samples []sample
	dropped int
}

// Filtered counts as an appender of package inputs does.
func (b *batch) Filtered(n int) { b.dropped += n }

func (b *batch) Append(ref storage.SeriesRef, ls labels.Labels, _, t int64, v float64, _ *histogram.Histogram, _ *histogram.FloatHistogram, o storage.AppendV2Options) (storage.SeriesRef, error) {
	b.m.mu.Lock()
	defer b.m.mu.Unlock()
	if known, ok := b.m.labels[ref]; ok {
		ls = known
	}
	if ls.IsEmpty() {
		return 0, storage.ErrNotFound
	}
	name := ls.String()
	if b.m.broken != "" && ls.Get("__name__") == b.m.broken {
		panic("planted")
	}
	if o.RejectOutOfOrder && t < b.m.newest[name] {
		return 0, storage.ErrOutOfOrderSample
	}
	if b.m.refs[name] == 0 {
		if b.m.most > 0 && len(b.m.refs) >= b.m.most {
			return 0, nil
		}
		b.m.last++
		b.m.refs[name], b.m.labels[b.m.last] = b.m.last, ls
	}
	b.samples = append(b.samples, sample{name, o.MetricFamilyName, t, v, value.IsStaleNaN(v), len(o.Exemplars)})
	return b.m.refs[name], nil
}

func (b *batch) Commit() error {
	b.m.mu.Lock()
	defer b.m.mu.Unlock()
	if b.m.broken == "commit" {
		panic("planted")
	}
	if b.m.full {
		b.m.refused++
		return errFull
	}
	b.m.commits = append(b.m.commits, b.samples)
	b.m.dropped += b.dropped
	for _, s := range b.samples {
		b.m.newest[s.series] = max(b.m.newest[s.series], s.t)
		if s.stale && b.m.most > 0 {
			delete(b.m.refs, s.series)
		}
	}
	return nil
}

func (b *batch) Rollback() error { return nil }

// until waits for a condition that becomes true by itself.
func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("timed out waiting until %s", what)
		}
	}
}

// certificate is self-made and valid for a hundred years.
const certificate = `-----BEGIN CERTIFICATE-----
MIIBdDCCARugAwIBAgIUKmWnlUps2Gg7oHSTSbEhNzyhs1MwCgYIKoZIzj0EAwIw
DzENMAsGA1UEAwwEdGVzdDAgFw0yNjExMjExMzUwNDhaGA8yMTI2MTAyODEzNTA0
OFowDzENMAsGA1UEAwwEdGVzdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABBYk
4P2QtAeGbtm9v+oRPe1N7QfkWLE21faHyU4DcLazmwZ9A4Gg8ZOZ9OOoOahV+jPV
AmpJYo5Fcf6H6HD/wMOjUzBRMB0GA1UdDgQWBBRZCIuMxwYA0VX5M897UHwWPZJn
uDAfBgNVHSMEGDAWgBRZCIuMxwYA0VX5M897UHwWPZJnuDAPBgNVHRMBAf8EBTAD
AQH/MAoGCCqGSM49BAMCA0cAMEQCIHtUjPoQhMAKHdCi+gJSHswO+tX3ZQUtTxfR
plZLEKS5AiB57vqIcLjnuAWDojP2Z1/eQLJz8elgDMz6YU7pT/MiJQ==
-----END CERTIFICATE-----
`

func listenUnix(t *testing.T, path string) net.Listener {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
