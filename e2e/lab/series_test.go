//go:build linux && amd64

package lab

import (
	"math"
	"strings"
	"sync"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/prompb"
)

// sample is one of a series; its time is the agent's, in milliseconds.
type sample struct {
	at int64
	v  float64
}

func (s sample) stale() bool { return value.IsStaleNaN(s.v) }

// series is what came of one series, oldest first.
type series struct {
	name, job string
	labels    map[string]string // all but the name, and those that tell which agent it is
	samples   []sample
}

// record is all that the agent wrote. It is safe for concurrent use.
type record struct {
	mu  sync.Mutex
	all map[string]*series // by their labels as text
}

func newRecord() *record { return &record{all: map[string]*series{}} }

// add is the sink of the receiver.
func (r *record) add(batch []prompb.TimeSeries) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range batch {
		lb := labels.NewScratchBuilder(0)
		ls := batch[i].ToLabels(&lb, nil)
		key := ls.String()
		s := r.all[key]
		if s == nil {
			s = &series{name: ls.Get("__name__"), job: ls.Get("job"), labels: map[string]string{}}
			ls.Range(func(l labels.Label) {
				switch l.Name {
				case "__name__", "job", "instance", "site":
				default:
					s.labels[strings.Clone(l.Name)] = strings.Clone(l.Value)
				}
			})
			s.name, s.job = strings.Clone(s.name), strings.Clone(s.job)
			r.all[strings.Clone(key)] = s
		}
		for _, p := range batch[i].Samples {
			s.samples = append(s.samples, sample{at: p.Timestamp, v: p.Value})
		}
	}
}

// copy is what has come so far. The samples are shared with the record, which only appends.
func (r *record) copy() map[string]series {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make(map[string]series, len(r.all))
	for key, s := range r.all {
		out[key] = *s
	}
	return out
}

// rounds are the times of a probe's rounds since a time, oldest first, and whether each was well: the samples of up.
func rounds(all map[string]series, job string, since int64) []sample {
	for _, s := range all {
		if s.name == "up" && s.job == job {
			for i, x := range s.samples {
				if x.at >= since {
					return s.samples[i:]
				}
			}
		}
	}
	return nil
}

// around are the last sample of a series before a time and the first one after it, in milliseconds; NaN where there is none.
func (s series) around(at int64) (before, after sample) {
	before.v, after.v = math.NaN(), math.NaN()
	for _, x := range s.samples {
		if x.at <= at {
			before = x
		} else {
			return before, x
		}
	}
	return before, after
}
