package remotewrite

import (
	"encoding/binary"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"

	"hwsagent/wal/queue"
)

type label = labels.Label

// rule is a demand of a specification on senders.
type rule struct {
	name    string // what is demanded
	section string // where
	check   func(t *testing.T, all []*wired)
}

func checkRules(t *testing.T, entry string, rules []rule) {
	// Small batches make a backlog of the log: there several samples of a series share a TimeSeries.
	all, o := overHTTP(t, entry+"\nqueue_config: {max_samples_per_send: 20, capacity: 40}", everyKind, nil)
	if o.GivenUp() != o.Dropped[queue.Unsupported] || len(all) == 0 {
		t.Fatalf("%d requests, outcome %+v", len(all), o)
	}
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			t.Logf("%q", r.section)
			r.check(t, all)
		})
	}
}

// eachSeries calls f for each TimeSeries and fails if there was none.
func eachSeries(t *testing.T, all []*wired, f func(s *wiredSeries)) {
	n := 0
	for _, r := range all {
		for i := range r.series {
			f(&r.series[i])
			n++
		}
	}
	if n == 0 {
		t.Error("no series came")
	}
}

func header(name, want string) func(*testing.T, []*wired) {
	return func(t *testing.T, all []*wired) {
		for _, r := range all {
			if got := r.header.Values(name); len(got) != 1 || got[0] != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
	}
}

// commonRules returns the rules that both specifications state in the same words, with the sections of 1.0 and 2.0.
func commonRules() []rule {
	return []rule{
		{"a POST to the URL that is configured", "Protocol", func(t *testing.T, all []*wired) {
			for _, r := range all {
				if r.method != http.MethodPost || r.uri != "/api/v1/write?x=y" {
					t.Errorf("%s %s", r.method, r.uri)
				}
			}
		}},
		{"Content-Encoding snappy, block format", "Protocol; Required headers", header("Content-Encoding", "snappy")}, // wire decodes blocks only
		{"User-Agent with name and version", "Protocol; Required headers", header("User-Agent", "hwsagent/1.2.3")},
		{"every label name once", "Labels", func(t *testing.T, all []*wired) {
			eachSeries(t, all, func(s *wiredSeries) {
				seen := map[string]bool{}
				for _, l := range s.labels {
					if seen[l.Name] {
						t.Errorf("%s twice in %v", l.Name, s.labels)
					}
					seen[l.Name] = true
				}
			})
		}},
		{"label names in lexicographic order, the metric's among them", "Labels", func(t *testing.T, all []*wired) {
			upper := false
			eachSeries(t, all, func(s *wiredSeries) {
				if !slices.IsSortedFunc(s.labels, func(a, b label) int { return strings.Compare(a.Name, b.Name) }) {
					t.Errorf("not sorted: %v", s.labels)
				}
				upper = upper || s.labels[0].Name == "Upper" // before __name__: it is not put first
			})
			if !upper {
				t.Error("no series has a label before its name")
			}
		}},
		{"no empty label name or value", "Labels", func(t *testing.T, all []*wired) {
			eachSeries(t, all, func(s *wiredSeries) {
				for _, l := range s.labels {
					if l.Name == "" || l.Value == "" {
						t.Errorf("empty in %v", s.labels)
					}
				}
			})
		}},
		{"the complete set of labels, and a name", "Labels", func(t *testing.T, all []*wired) {
			eachSeries(t, all, func(s *wiredSeries) {
				if !slices.Contains(s.labels, label{Name: "site", Value: "fra1"}) || !slices.Contains(s.labels, label{Name: "job", Value: "host"}) || s.name() == "" {
					t.Errorf("labels %v", s.labels)
				}
			})
		}},
		{"label values of any UTF-8, and no other", "Labels", func(t *testing.T, all []*wired) {
			repaired := false
			eachSeries(t, all, func(s *wiredSeries) {
				for _, l := range s.labels {
					repaired = repaired || l == label{Name: "bad", Value: "v\uFFFD"}
					if !utf8.ValidString(l.Value) || !utf8.ValidString(l.Name) {
						t.Errorf("%q", l)
					}
				}
			})
			if !repaired {
				t.Error("the value that was no UTF-8 did not come")
			}
		}},
		{"samples of a TimeSeries ordered by time", "Ordering; Samples", func(t *testing.T, all []*wired) {
			grouped := false
			eachSeries(t, all, func(s *wiredSeries) {
				grouped = grouped || len(s.samples) > 1
				if !slices.IsSortedFunc(s.samples, func(a, b writev2.Sample) int { return int(a.Timestamp - b.Timestamp) }) ||
					!slices.IsSortedFunc(s.histograms, func(a, b writev2.Histogram) int { return int(a.Timestamp - b.Timestamp) }) {
					t.Errorf("%s: %v %v", s.name(), s.samples, s.histograms)
				}
			})
			if !grouped {
				t.Error("no TimeSeries has two samples")
			}
		}},
		{"samples of a series in their order, one request at a time", "Ordering", func(t *testing.T, all []*wired) {
			next := map[string]float64{}
			eachSeries(t, all, func(s *wiredSeries) {
				for _, p := range s.samples {
					if p.Value < next[s.name()] && len(s.samples) == 1 {
						continue // sent again, to ask whether the receiver takes old samples
					}
					if p.Value != next[s.name()] && !math.IsNaN(p.Value) {
						t.Errorf("%s: value %v, want %v", s.name(), p.Value, next[s.name()])
					}
					next[s.name()]++
				}
			})
		}},
		{"timestamps in milliseconds", "Timestamps & values", func(t *testing.T, all []*wired) {
			eachSeries(t, all, func(s *wiredSeries) {
				for _, p := range s.samples {
					if p.Timestamp < wireStart-20_000 || p.Timestamp > wireStart+20_000 {
						t.Errorf("%d", p.Timestamp)
					}
				}
			})
		}},
		{"a stale marker is the NaN 0x7ff0000000000002", "Stale Markers", func(t *testing.T, all []*wired) {
			stale := 0
			eachSeries(t, all, func(s *wiredSeries) {
				for _, p := range s.samples {
					if math.Float64bits(p.Value) == value.StaleNaN {
						stale++
					} else if math.IsNaN(p.Value) {
						t.Errorf("NaN %#x", math.Float64bits(p.Value))
					}
				}
				for _, h := range s.histograms {
					if math.Float64bits(h.Sum) == value.StaleNaN {
						stale++
					}
				}
			})
			if stale != 4+2 {
				t.Errorf("%d stale markers came, want 6", stale)
			}
		}},
		{"floats and histograms never in one TimeSeries", "Samples; the message", func(t *testing.T, all []*wired) {
			both := map[string]int{}
			eachSeries(t, all, func(s *wiredSeries) {
				if len(s.samples) > 0 && len(s.histograms) > 0 {
					t.Errorf("%s has both", s.name())
				}
				if s.name() == "b" {
					both["floats"] += len(s.samples)
					both["histograms"] += len(s.histograms)
				}
			})
			if both["floats"] != 12 || both["histograms"] != 12 {
				t.Errorf("of a series with both came %v", both)
			}
		}},
		{"several series in a request", "Protocol; batching", func(t *testing.T, all []*wired) {
			if !slices.ContainsFunc(all, func(r *wired) bool { return len(r.series) > 2 }) {
				t.Error("no request has more than two")
			}
		}},
	}
}

// TestSpecification1 holds the sender to each demand of the remote write specification 1.0.
func TestSpecification1(t *testing.T) {
	checkRules(t, "protobuf_message: prometheus.WriteRequest", append(commonRules(),
		rule{"Content-Type application/x-protobuf", "Protocol", header("Content-Type", "application/x-protobuf")},
		rule{"X-Prometheus-Remote-Write-Version 0.1.0", "Protocol", header("X-Prometheus-Remote-Write-Version", "0.1.0")},
		rule{"metric and label names of the legal characters", "Labels", func(t *testing.T, all []*wired) {
			metric, name, escaped := regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*$`), regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`), false
			eachSeries(t, all, func(s *wiredSeries) {
				escaped = escaped || s.name() == "hw_temperature"
				for _, l := range s.labels {
					if !name.MatchString(l.Name) || l.Name == "__name__" && !metric.MatchString(l.Value) {
						t.Errorf("%v", s.labels)
					}
				}
			})
			if !escaped {
				t.Error("the series with another name did not come")
			}
		}},
		rule{"no custom buckets", "not in the message; Prometheus drops them as nhcb_in_rw1_not_supported", func(t *testing.T, all []*wired) {
			eachSeries(t, all, func(s *wiredSeries) {
				if s.name() == "nhcb" || slices.ContainsFunc(s.histograms, func(h writev2.Histogram) bool { return h.Schema == histogram.CustomBucketsSchema }) {
					t.Errorf("%s came", s.name())
				}
			})
		}},
		rule{"nothing in the message that it does not have", "Protocol, the message", func(t *testing.T, all []*wired) {
			for _, r := range all {
				if again, err := r.v1.Marshal(); err != nil || len(again) != len(r.raw) {
					t.Errorf("%d bytes, of which the library knows %d (%v)", len(r.raw), len(again), err)
				}
			}
		}},
	))
}

// TestSpecification2 holds the sender to each demand of the remote write specification
// 2.0-rc.4.
func TestSpecification2(t *testing.T) {
	checkRules(t, "protobuf_message: io.prometheus.write.v2.Request", append(commonRules(),
		rule{"Content-Type with the message's name", "Protocol, Content-Type", header("Content-Type", "application/x-protobuf;proto=io.prometheus.write.v2.Request")},
		rule{"X-Prometheus-Remote-Write-Version 2.0.0", "Protocol, X-Prometheus-Remote-Write-Version", header("X-Prometheus-Remote-Write-Version", "2.0.0")},
		rule{"symbols begin with the empty string", "Protobuf Message, Symbols", func(t *testing.T, all []*wired) {
			for _, r := range all { // empty writes as well
				if len(r.v2.Symbols) == 0 || r.v2.Symbols[0] != "" {
					t.Errorf("symbols %q", r.v2.Symbols)
				}
			}
		}},
		rule{"symbols are deduplicated, and each is used", "Protobuf Message, Symbols", func(t *testing.T, all []*wired) {
			for _, r := range all {
				used := make([]bool, len(r.v2.Symbols))
				for _, ts := range r.v2.Timeseries {
					used[ts.Metadata.HelpRef], used[ts.Metadata.UnitRef] = true, true
					for _, ref := range ts.LabelsRefs {
						used[ref] = true
					}
					for _, x := range ts.Exemplars {
						for _, ref := range x.LabelsRefs {
							used[ref] = true
						}
					}
				}
				seen := map[string]bool{}
				for i, s := range r.v2.Symbols {
					if seen[s] || !used[i] && i > 0 || !utf8.ValidString(s) {
						t.Errorf("symbol %d, %q: twice %v, used %v", i, s, seen[s], used[i])
					}
					seen[s] = true
				}
			}
		}},
		rule{"symbols before what refers to them", "Protobuf Message; for receivers that read in one go", func(t *testing.T, all []*wired) {
			for _, r := range all {
				last := uint64(0)
				for b := r.raw; len(b) > 0; {
					key, n := binary.Uvarint(b)
					size, m := binary.Uvarint(b[n:])
					if key < last {
						t.Fatalf("field %d after field %d", key>>3, last>>3)
					}
					last, b = key, b[n+m+int(size):]
				}
			}
		}},
		rule{"pairs of references within the symbols", "Protobuf Message, Labels", func(t *testing.T, all []*wired) {
			for _, r := range all {
				for _, ts := range r.v2.Timeseries {
					if len(ts.LabelsRefs)%2 != 0 || slices.ContainsFunc(ts.LabelsRefs, func(ref uint32) bool { return int(ref) >= len(r.v2.Symbols) }) {
						t.Errorf("references %v to %d symbols", ts.LabelsRefs, len(r.v2.Symbols))
					}
				}
			}
		}},
		rule{"names of any UTF-8 as they are", "Labels", func(t *testing.T, all []*wired) {
			found := false
			eachSeries(t, all, func(s *wiredSeries) {
				found = found || s.name() == "hw.temperature" && slices.Contains(s.labels, label{Name: "hw.id", Value: "cpu"})
			})
			if !found {
				t.Error("hw.temperature did not come")
			}
		}},
		rule{"each TimeSeries with a sample or histogram at least", "Protobuf Message, Samples and Histogram Samples", func(t *testing.T, all []*wired) {
			eachSeries(t, all, func(s *wiredSeries) {
				if len(s.samples)+len(s.histograms) == 0 {
					t.Errorf("%v has none", s.labels)
				}
			})
		}},
		rule{"metadata with each series: type, help, unit", "Protobuf Message, Metadata", func(t *testing.T, all []*wired) {
			for _, r := range all {
				for i, s := range r.series {
					m := r.v2.Timeseries[i].Metadata
					got := fmt.Sprintf("%d %q %q", m.Type, r.v2.Symbols[m.HelpRef], r.v2.Symbols[m.UnitRef])
					want := map[string]string{"a_total": `1 "Help` + "\uFFFD" + `." "bytes"`, "b": `0 "" ""`, "hw.temperature": `2 "" ""`,
						"values": `0 "Values." ""`, "h": `3 "" ""`, "fh": `4 "" ""`, "nhcb": `3 "" ""`}[s.name()]
					if got != want {
						t.Errorf("%s: %s, want %s", s.name(), got, want)
					}
				}
			}
		}},
		rule{"no metadata in requests of 1.0 beside it", "Protobuf Message, Metadata", func(t *testing.T, all []*wired) {
			for _, r := range all {
				if r.v1 != nil {
					t.Error("a request of 1.0 came")
				}
			}
		}},
		rule{"start timestamps with samples and histograms", "Protobuf Message, Samples, start_timestamp", func(t *testing.T, all []*wired) {
			eachSeries(t, all, func(s *wiredSeries) {
				for _, p := range s.samples {
					if p.StartTimestamp != wireStart-5000 {
						t.Errorf("%s: %d", s.name(), p.StartTimestamp)
					}
				}
				for _, h := range s.histograms {
					if want := map[string]int64{"h": wireStart - 5000}[s.name()]; h.StartTimestamp != want {
						t.Errorf("%s: %d, want %d", s.name(), h.StartTimestamp, want)
					}
				}
			})
		}},
		rule{"exemplars with value and timestamp, at their series", "Protobuf Message, Exemplars", func(t *testing.T, all []*wired) {
			n := map[string]int{}
			eachSeries(t, all, func(s *wiredSeries) {
				n[s.name()] += s.exemplars
				for i, x := range s.traces {
					if x.Timestamp == 0 || i > 0 && x.Value <= s.traces[i-1].Value {
						t.Errorf("%s: %+v", s.name(), s.traces)
					}
				}
			})
			if n["a_total"] != 12 || n["h"] != 12 {
				t.Errorf("exemplars %v, want 12 of two series", n)
			}
		}},
		rule{"custom buckets", "Protobuf Message, Histogram, schema -53", func(t *testing.T, all []*wired) {
			n := 0
			eachSeries(t, all, func(s *wiredSeries) {
				for _, h := range s.histograms {
					if h.Schema == histogram.CustomBucketsSchema && slices.Equal(h.CustomValues, []float64{1, 2}) {
						n++
					}
				}
			})
			if n != 12 {
				t.Errorf("%d came, want 12", n)
			}
		}},
		rule{"nothing in the message that it does not have", "Protobuf Message", func(t *testing.T, all []*wired) {
			for _, r := range all {
				if again, err := r.v2.Marshal(); err != nil || len(again) < len(r.raw) {
					t.Errorf("%d bytes, of which the library knows %d (%v)", len(r.raw), len(again), err)
				}
			}
		}},
	))
}
