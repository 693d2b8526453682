package e2e

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/prompb"

	"hwsagent/agent/demo/receiver"
	"hwsagent/internal/tools/tier"
)

var hoursOf = flag.Duration("hours", 20*time.Minute, "how long TestHours lasts; at least a quarter of an hour")

// The load of TestHours beside its 10,000 canary samples a second, and its events.
const (
	hoursChurn   = 500              // new series of another sender in each turn; those of the turn before end
	hoursTurn    = 30 * time.Second // one turn
	hoursSends   = 5 * time.Second  // how often the other sender sends its series, and one reading of the figures
	hoursOutages = 11               // a target is down for a fifth of the time from one outage to the next
	hoursReloads = 17
)

// footprint is what a process holds at one time.
type footprint struct {
	anonymous             uint64 // bytes of memory that belong to no file
	descriptors, routines int
}

// footprint reads the agent's figures from the kernel and from its own metrics.
func (a *agent) footprint() footprint {
	a.t.Helper()
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", a.cmd.Process.Pid))
	if err != nil {
		a.t.Fatal(err)
	}
	code, text, err := a.ask(http.MethodGet, "/metrics")
	if err != nil || code != http.StatusOK {
		a.t.Fatalf("metrics: %d %v (%s)", code, err, a.ended())
	}
	f := footprint{anonymous: a.memory("RssAnon"), descriptors: len(fds)}
	for line := range strings.Lines(text) {
		if n, ok := strings.CutPrefix(line, "go_goroutines "); ok {
			if _, err := fmt.Sscan(n, &f.routines); err != nil {
				a.t.Fatalf("%q: %v", line, err)
			}
		}
	}
	return f
}

// churned is a request of the other sender: the series of one turn, with one sample each.
func churned(t *testing.T, turn int, at time.Time) []byte {
	t.Helper()
	var req prompb.WriteRequest
	for i := range hoursChurn {
		req.Timeseries = append(req.Timeseries, prompb.TimeSeries{
			Labels: []prompb.Label{
				{Name: "__name__", Value: "churned"},
				{Name: "pod", Value: fmt.Sprintf("pod-%d-%d", turn, i)},
			},
			Samples: []prompb.Sample{{Value: float64(turn), Timestamp: at.UnixMilli()}},
		})
	}
	raw, err := req.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return snappy.Encode(nil, raw)
}

// TestHours: at 10,000 samples a second, while series come and go, targets fail in turn and the configuration is reloaded, the
// agent needs no more memory, descriptors and goroutines in its last quarter than in the one before, and its account is exact.
func TestHours(t *testing.T) {
	tier.OnlyNightly(t, "loads the machine for "+hoursOf.String())
	p := startPrometheus(t, "")
	r, oracle := startReceiver(t, receiver.Options{})
	in := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	l := newLoad(t, 1000, 100*time.Millisecond, "", oracle)
	configured := func(deadline string) string {
		return fmt.Sprintf(`  - {name: counted, url: %q, queue_config: {batch_send_deadline: %s, max_backoff: 5s}}
  - {name: prometheus, url: %q, queue_config: {batch_send_deadline: %[2]s, max_backoff: 5s}}
receivers:
  remote_write: {listen: %[4]q}
`, r.URL(), deadline, p.writeURL(), in)
	}
	l.targets = configured("1s")
	l.begin()

	begin := time.Now()
	outage, reload := *hoursOf/(hoursOutages+1), *hoursOf/(hoursReloads+1)
	var prints []footprint
	var sent, refused uint64 // samples of the other sender
	reloads, outages := 0, 0
	var restore func()
	tick := time.NewTicker(hoursSends)
	defer tick.Stop()
	for now := begin; now.Sub(begin) < *hoursOf; now = <-tick.C {
		since := now.Sub(begin)
		if code, text := post(t, httpClient(t), "http://"+in+"/api/v1/write", "", churned(t, int(since/hoursTurn), now)); code/100 == 2 {
			sent += hoursChurn
		} else {
			t.Logf("after %s: the other sender got %d %s", since, code, text)
			refused += hoursChurn
		}
		prints = append(prints, l.footprint())
		if len(prints)%6 == 1 {
			t.Logf("%6s: %+v", since.Round(time.Second), prints[len(prints)-1])
		}
		if int(since/reload) > reloads {
			reloads++
			l.targets = configured(fmt.Sprintf("%ds", 1+reloads%2))
			l.reload(l.text(true))
		}
		switch down := since > outage && since%outage < outage/5; {
		case down && restore == nil:
			outages++
			if outages%2 == 0 {
				p.terminate(time.Minute)
				restore = func() { p.start(); ready(t, p.process, "http://"+p.addr+"/-/ready") }
			} else {
				r.Stop()
				restore = func() {
					if err := r.Start(); err != nil {
						t.Fatal(err)
					}
				}
			}
		case !down && restore != nil:
			restore()
			restore = nil
		}
	}
	if restore != nil {
		restore()
	}
	result := l.settle(5*time.Minute, "counted")
	for _, name := range []string{"counted", "prometheus"} {
		tg := l.drained(5*time.Minute, name)
		t.Logf("%s: %+v", name, tg.Ledger)
		if tg.Ledger.Lost > 0 || tg.Ledger.Delivered != tg.Ledger.Appended {
			t.Errorf("%s: not all samples are delivered: %+v", name, tg.Ledger)
		}
	}
	if result.Missing > 0 || result.Garbled > 0 || result.Ghosts > 0 {
		t.Errorf("account of the canaries: %+v", result)
	}
	l.storedBy(p, time.Since(begin))
	t.Logf("%d reloads, %d outages, %d samples of other series (%d refused), %d canary samples", reloads, outages, sent, refused, result.Appended)
	if sent == 0 || reloads < hoursReloads || outages < hoursOutages {
		t.Errorf("%d of %d reloads and %d of %d outages took place", reloads, hoursReloads, outages, hoursOutages)
	}
	flat(t, prints)
}

// storedBy compares how many samples of each canary a Prometheus has with what the log acknowledged.
func (l *load) storedBy(p *prometheus, since time.Duration) {
	l.t.Helper()
	want, series := len(l.journal().Acked), 0
	for digit := range 10 {
		expr := fmt.Sprintf("count_over_time(%s{series=~\".*%d\"}[%ds])", receiver.CanaryName, digit, int(since.Seconds())+600)
		for _, s := range p.query(expr) {
			series++
			if got := int(s.Value.V); got != want {
				l.t.Errorf("series %s has %d samples, %d are acknowledged", s.Metric["series"], got, want)
			}
		}
	}
	if series != l.series {
		l.t.Errorf("%d canary series, want %d", series, l.series)
	}
}

// flat compares the medians of the last two quarters.
func flat(t *testing.T, prints []footprint) {
	t.Helper()
	quarter := len(prints) / 4
	if quarter == 0 {
		t.Fatalf("only %d readings", len(prints))
	}
	median := func(of []footprint, figure func(footprint) int) int {
		var all []int
		for _, f := range of {
			all = append(all, figure(f))
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	for name, is := range map[string]struct {
		figure func(footprint) int
		more   int // allowed
	}{
		"anonymous memory": {func(f footprint) int { return int(f.anonymous) }, 8 << 20},
		"descriptors":      {func(f footprint) int { return f.descriptors }, 8},
		"goroutines":       {func(f footprint) int { return f.routines }, 20},
	} {
		before, after := median(prints[2*quarter:3*quarter], is.figure), median(prints[3*quarter:], is.figure)
		t.Logf("%s: %d in the third quarter, %d in the last", name, before, after)
		if after > before+is.more {
			t.Errorf("%s grows: %d in the third quarter, %d in the last", name, before, after)
		}
	}
}
