package scrape

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// asked notes when each host was asked.
type asked struct {
	mu sync.Mutex
	at map[string][]time.Time
}

// page notes the request and answers with one sample.
func (a *asked) page(req *http.Request) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at[req.URL.Host] = append(a.at[req.URL.Host], time.Now())
	return "a 1\n", nil
}

// hosts names n targets.
func hosts(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("host%d:1", i))
	}
	return all
}

// TestFirstScrapesComeSoon: at a start a hundred targets are scraped within a second, and a hundred in each
// further one, until their points of the interval come; from there on each keeps to its point.
func TestFirstScrapesComeSoon(t *testing.T) {
	const n, interval = 1000, time.Minute
	synctest.Test(t, func(t *testing.T) {
		a := asked{at: map[string][]time.Time{}}
		p, stop := bubbled(t, newMemory(), a.page, "{job_name: j, scrape_interval: 1m, scrape_timeout: 10s}")
		defer stop()
		time.Sleep(17 * time.Second)
		start := time.Now()
		p.firsts.begun = start
		p.sync(group(hosts(n)...))
		points := map[string]time.Duration{}
		for _, m := range p.loops {
			points[m.target.labels.Get("__address__")] = m.target.offset(start, interval, p.seed)
		}
		time.Sleep(3 * interval)
		synctest.Wait()
		a.mu.Lock()
		defer a.mu.Unlock()
		early, within := map[time.Duration]int{}, 0
		for host, times := range a.at {
			first := times[0].Sub(start)
			if first < time.Second {
				within++
			}
			if first != points[host] {
				early[first/time.Second]++
				times = times[1:]
			}
			if len(times) != 3 {
				t.Fatalf("%s was scraped %d times at its point in three minutes", host, len(times))
			}
			for i, at := range times {
				if got := at.Sub(start); got != points[host]+time.Duration(i)*interval {
					t.Errorf("%s is scraped at %s, its point is %s", host, got, points[host])
				}
			}
			if gap := times[0].Sub(start) - first; first != points[host] && gap < firstWithin-firstSpread {
				t.Errorf("%s is scraped %s after its first scrape", host, gap)
			}
		}
		if len(a.at) != n || within < firstRate || len(early) < 5 {
			t.Errorf("of %d targets %d were scraped in the first second, and first scrapes came in %d seconds", len(a.at), within, len(early))
		}
		for second, k := range early {
			if k > firstRate {
				t.Errorf("%d first scrapes in second %d", k, second)
			}
		}
	})
}

// TestFirstScrapesAreOfTheStart: targets that are found later, and those that a reload changes, wait for
// their points of the interval.
func TestFirstScrapesAreOfTheStart(t *testing.T) {
	const interval = time.Hour
	synctest.Test(t, func(t *testing.T) {
		a := asked{at: map[string][]time.Time{}}
		p, stop := bubbled(t, newMemory(), a.page, "{job_name: j, scrape_interval: 1h, scrape_timeout: 10s}")
		defer stop()
		p.firsts.begun = time.Now()
		few := hosts(5)
		p.sync(group(few[:4]...))
		time.Sleep(2 * time.Second)
		if err := p.reload(configOf(t, "{job_name: j, scrape_interval: 1h, scrape_timeout: 10s, sample_limit: 9}"), group(few[:4]...)); err != nil {
			t.Fatal(err)
		}
		p.clients[""].http = &http.Client{Transport: pageFunc(a.page)}
		time.Sleep(firstLasts - 2*time.Second)
		p.sync(group(few...))
		start := time.Now()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		a.mu.Lock()
		for _, host := range few[:4] {
			if len(a.at[host]) != 1 {
				t.Errorf("%s was scraped %d times, want once", host, len(a.at[host]))
			}
		}
		a.mu.Unlock()
		time.Sleep(interval)
		synctest.Wait()
		late := few[4]
		a.mu.Lock()
		defer a.mu.Unlock()
		for _, m := range p.loops {
			if host := string(m.target.labels.Get("__address__")); host == late {
				if want := m.target.offset(start, interval, p.seed); len(a.at[host]) == 0 || a.at[host][0].Sub(start) != want {
					t.Errorf("the late target was scraped at %v, want %s after it was found", a.at[host], want)
				}
			}
		}
	})
}
