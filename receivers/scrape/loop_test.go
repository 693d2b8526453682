package scrape

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery/targetgroup"

	"hwsagent/internal/panics"
)

// pageFunc answers requests within the bubble of a test of time.
type pageFunc func(req *http.Request) (string, error)

// RoundTrip implements [http.RoundTripper].
func (f pageFunc) RoundTrip(req *http.Request) (*http.Response, error) {
	text, err := f(req)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/plain"}}, Body: io.NopCloser(strings.NewReader(text)), Request: req,
	}, nil
}

// bubbled is a pool whose requests f answers. stop ends it as the agent does.
func bubbled(t *testing.T, m *memory, f pageFunc, entry string) (p *pool, stop func()) {
	t.Helper()
	logger := slog.New(slog.DiscardHandler)
	agent, endJobs := context.WithCancel(context.Background())
	requests, endRequests := context.WithCancel(context.Background())
	s := &shared{sink: newSink(m.out, logger), metrics: newMetrics(), logger: logger, requests: requests,
		guards: &guards{func(job string) *panics.Guard { return panics.New(job, logger) }}}
	var loops sync.WaitGroup
	p, err := newPool(s, &loops, agent, configOf(t, entry))
	if err != nil {
		t.Fatal(err)
	}
	p.clients[""].http = &http.Client{Transport: f}
	return p, func() {
		endJobs()
		s.sink.close()
		endRequests()
		loops.Wait()
	}
}

func group(targets ...string) []*targetgroup.Group {
	g := &targetgroup.Group{Source: "test"}
	for _, one := range targets {
		g.Targets = append(g.Targets, model.LabelSet{model.AddressLabel: model.LabelValue(one), "instance": "i"})
	}
	return []*targetgroup.Group{g}
}

// TestScrapesAreSpread: each target has a point of the interval of its own, the same after each
// start, and is scraped there, an interval apart.
func TestScrapesAreSpread(t *testing.T) {
	points := map[string]map[time.Duration]bool{}
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			asked := map[string][]time.Time{}
			p, stop := bubbled(t, newMemory(), func(req *http.Request) (string, error) {
				mu.Lock()
				defer mu.Unlock()
				asked[req.URL.Host] = append(asked[req.URL.Host], time.Now())
				return "a 1\n", nil
			}, "{job_name: j, scrape_interval: 1m, scrape_timeout: 10s}")
			defer stop()
			time.Sleep(time.Duration(len(points)) * 7 * time.Second) // another start
			var all []string
			for i := range 40 {
				all = append(all, fmt.Sprintf("host%d:1", i))
			}
			p.sync(group(all...))
			time.Sleep(5 * time.Minute)
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			for host, times := range asked {
				if len(times) != 5 {
					t.Errorf("%s was scraped %d times in five minutes", host, len(times))
				}
				for i, at := range times {
					if i > 0 && at.Sub(times[i-1]) != time.Minute {
						t.Errorf("%s: %s between two scrapes", host, at.Sub(times[i-1]))
					}
				}
				if points[host] == nil {
					points[host] = map[time.Duration]bool{}
				}
				points[host][time.Duration(times[0].UnixNano()%int64(time.Minute))] = true
			}
		})
	}
	quarters := map[time.Duration]bool{}
	for host, of := range points {
		if len(of) != 1 {
			t.Errorf("the point of %s moves: %v", host, of)
		}
		for point := range of {
			quarters[point/(15*time.Second)] = true
		}
	}
	if len(points) != 40 || len(quarters) != 4 {
		t.Errorf("%d targets in %d quarters of the interval", len(points), len(quarters))
	}
}

// TestTargetGoes: the series of a target that goes end two intervals later, also if a reload came after
// its last scrape; those of one that comes back by then do not, and neither do those of a job that is
// removed, or of an agent that stops.
func TestTargetGoes(t *testing.T) {
	const up = `{__name__="up", instance="i", job="j"}`
	for name, want := range map[string]bool{
		"for good": true, "and comes back": false, "with the job": false, "with the agent": false,
		"after a reload": true, "after two reloads": true,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMemory()
				p, stop := bubbled(t, m, func(*http.Request) (string, error) { return "a 1\n", nil }, "{job_name: j, scrape_interval: 1m, scrape_timeout: 10s}")
				defer stop()
				p.sync(group("a:1"))
				time.Sleep(3*time.Minute + time.Second)
				switch name {
				case "with the job":
					p.stop()
				case "with the agent":
					stop()
				case "after a reload", "after two reloads": // and before the next scrape
					for i := range strings.Count(name, "two") + 1 {
						if err := p.reload(configOf(t, fmt.Sprintf("{job_name: j, scrape_interval: 1m, scrape_timeout: 10s, sample_limit: %d}", i+99)), group("a:1")); err != nil {
							t.Fatal(err)
						}
					}
					synctest.Wait()
					p.sync(nil)
				default:
					p.sync(nil)
				}
				gone := time.Now().UnixMilli()
				if name == "and comes back" {
					time.Sleep(30 * time.Second)
					p.sync(group("a:1"))
				}
				time.Sleep(5 * time.Minute)
				synctest.Wait()
				for _, series := range []string{up, aOf} {
					stale := 0
					for _, s := range m.all(series) {
						if s.stale {
							stale++
							if late := time.Duration(s.t-gone) * time.Millisecond; late <= 0 || late > time.Minute {
								t.Errorf("%s ends %s after the target went", series, late)
							}
						}
					}
					if (stale == 1) != want || stale > 1 {
						t.Errorf("%s has %d stale markers", series, stale)
					}
				}
			})
		})
	}
}

// TestTimeout: a scrape ends with its timeout, and with the agent's stop at once; the latter says
// nothing about the target.
func TestTimeout(t *testing.T) {
	for _, stopped := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			m := newMemory()
			var ended atomic.Int64
			p, stop := bubbled(t, m, func(req *http.Request) (string, error) {
				<-req.Context().Done()
				ended.Store(time.Now().UnixNano())
				return "", req.Context().Err()
			}, "{job_name: j, scrape_interval: 1m, scrape_timeout: 10s}")
			p.sync(group("a:1"))
			var member *member
			for _, member = range p.loops {
			}
			first := member.target.offset(time.Now(), time.Minute, 0)
			time.Sleep(first + 5*time.Second)
			if stopped {
				stop()
				if m.committed() != 0 || ended.Load() != time.Now().UnixNano() {
					t.Errorf("%v are committed", m.commits)
				}
				if health, _, _, _ := member.target.state.last(); health != healthUnknown {
					t.Errorf("the target is %s", health)
				}
				return
			}
			defer stop()
			time.Sleep(6 * time.Second)
			synctest.Wait()
			health, start, took, err := member.target.state.last()
			if health != healthDown || took != 10*time.Second || time.Since(start) != 11*time.Second || !strings.Contains(err, "deadline exceeded") {
				t.Errorf("%s, began %s ago, took %s: %s", health, time.Since(start), took, err)
			}
			if ups := m.all(`{__name__="up", instance="i", job="j"}`); len(ups) != 1 || ups[0].v != 0 {
				t.Errorf("up is %v", ups)
			}
		})
	}
}

// TestPanicCostsTheScrape: a panic while a page is stored fails that scrape, one at its end loses
// it; the target says so, others go on, and so does the target afterwards.
func TestPanicCostsTheScrape(t *testing.T) {
	for _, at := range []string{"boom", "commit"} {
		synctest.Test(t, func(t *testing.T) {
			m := newMemory()
			p, stop := bubbled(t, m, func(req *http.Request) (string, error) {
				if req.URL.Host == "bad:1" {
					return "a 1\nboom 1\n", nil
				}
				return "a 1\n", nil
			}, "{job_name: j, scrape_interval: 1m, scrape_timeout: 10s}")
			defer stop()
			p.sync(group("good:1", "bad:1"))
			state := func(host string) (health, err string) {
				for _, m := range p.loops {
					if strings.Contains(m.target.url, host) {
						health, _, _, err = m.target.state.last()
					}
				}
				return health, err
			}
			m.plant(at)
			time.Sleep(2*time.Minute + time.Second)
			synctest.Wait()
			if health, err := state("bad"); health != healthDown || !strings.Contains(err, "panicked") {
				t.Errorf("%s: the target is %s: %s", at, health, err)
			}
			if n := p.guard.Count(); n < 2 {
				t.Errorf("%s: %d panics are counted", at, n)
			}
			if health, _ := state("good"); at == "boom" && health != healthUp {
				t.Errorf("the other target is %s", health)
			}
			m.plant("")
			time.Sleep(time.Minute)
			synctest.Wait()
			if health, err := state("bad"); health != healthUp {
				t.Errorf("%s: afterwards the target is %s: %s", at, health, err)
			}
		})
	}
}
