// Package exportertest compares the series of another program's exporter with those of a probe that reads the same device.
package exportertest

import (
	"bytes"
	"io"
	"math"
	"net"
	"net/http"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"hwsagent/probes"
)

// Start runs an exporter until the test ends, and returns its address, on which it listens within that time.
func Start(t *testing.T, within time.Duration, program string, args ...string) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address = l.Addr().String()
	_ = l.Close()
	cmd := exec.Command(program, append(args, "--web.listen-address="+address)...) // #nosec G204 -- the test's own
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-done
		if t.Failed() {
			t.Logf("%s: %s", program, said.String())
		}
	})
	for deadline := time.Now().Add(within); time.Now().Before(deadline); {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
			return address
		}
		select {
		case <-done:
			t.Fatalf("%s ended", program)
		case <-time.After(20 * time.Millisecond):
		}
	}
	t.Fatalf("%s does not listen", program)
	return ""
}

// Page returns the series of an exporter's page by their keys, see [Key]. change, if not nil, returns the labels by which a series is known
// here, names and values in turn.
func Page(t *testing.T, url string, change func(labels []string) []string) map[string]float64 {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	page, err := io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	if err != nil {
		t.Fatal(err)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(page))
	if err != nil {
		t.Fatalf("%s: %v: %.3000s", url, err, page)
	}
	all := make(map[string]float64)
	for name, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName(), l.GetValue())
			}
			if change != nil {
				labels = change(labels)
			}
			all[Key(name, labels)] = m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetUntyped().GetValue()
		}
	}
	return all
}

// Round returns the samples of a round by the keys of their series.
func Round(r *probes.Round) map[string]float64 {
	all := make(map[string]float64)
	for _, s := range r.Samples() {
		all[Key(s.Family.Name, s.Labels)] = s.Value
	}
	return all
}

// Key returns a series as text, with its labels, names and values in turn, in order and without those that have no value.
func Key(name string, labels []string) string {
	var pairs []string
	for i := 0; i < len(labels); i += 2 {
		if labels[i+1] != "" {
			pairs = append(pairs, labels[i]+"="+strconv.Quote(labels[i+1]))
		}
	}
	slices.Sort(pairs)
	return name + "{" + strings.Join(pairs, ",") + "}"
}

// Difference is a listed difference of the series that begin with a text.
type Difference struct {
	Series       string
	Ours, Theirs float64 // NaN: no sample; +Inf: whatever it is
	Why          string
}

// Comparison compares an exporter's series with a probe's.
type Comparison struct {
	Exporter    string  // its name, for messages
	Tolerance   float64 // up to which values are equal
	Differences []Difference

	used []bool // by difference
}

// Compare reports each of their series whose value the probe does not have, unless the difference is listed, and returns how many are equal.
func (c *Comparison) Compare(t *testing.T, ours, theirs map[string]float64) (equal int) {
	t.Helper()
	c.used = append(c.used, make([]bool, len(c.Differences)-len(c.used))...)
	for key, want := range theirs {
		got, there := ours[key]
		if !there {
			got = math.NaN()
		}
		i := slices.IndexFunc(c.Differences, func(d Difference) bool { return strings.HasPrefix(key, d.Series) })
		switch {
		case c.equal(got, want):
			equal++
		case i < 0:
			t.Errorf("%s is %v, and %v of %s", key, got, want, c.Exporter)
		default:
			c.used[i] = true
			if d := c.Differences[i]; !c.equal(got, d.Ours) || !c.equal(want, d.Theirs) {
				t.Errorf("%s is %v, and %v of %s; listed is that it is %v and %v", key, got, want, c.Exporter, d.Ours, d.Theirs)
			}
		}
	}
	t.Logf("%d series are equal", equal)
	return equal
}

// AllUsed reports each listed difference that no comparison has found.
func (c *Comparison) AllUsed(t *testing.T) {
	t.Helper()
	for i, d := range c.Differences {
		if i >= len(c.used) || !c.used[i] {
			t.Errorf("%s is listed as different (%s), and is not", d.Series, d.Why)
		}
	}
}

func (c *Comparison) equal(a, b float64) bool {
	return math.IsInf(b, 1) || math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= c.Tolerance
}
