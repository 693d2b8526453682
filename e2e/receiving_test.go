package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/push"
	"github.com/prometheus/prometheus/prompb"

	"hwsagent/agent/demo/receiver"
)

// arrivals is what a target was sent: the values of each series, by its labels as in
// name{label=value,…}, in the order in which they came.
type arrivals struct {
	mu     sync.Mutex
	series map[string][]prompb.Sample
	native map[string]int
}

func (a *arrivals) add(all []prompb.TimeSeries) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, ts := range all {
		var name string
		var pairs []string
		for _, l := range ts.Labels {
			if l.Name == "__name__" {
				name = l.Value
			} else {
				pairs = append(pairs, l.Name+"="+l.Value)
			}
		}
		key := name + "{" + strings.Join(pairs, ",") + "}"
		a.series[key] = append(a.series[key], ts.Samples...)
		a.native[key] += len(ts.Histograms)
	}
}

// values returns those of a series so far.
func (a *arrivals) values(key string) (all []float64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.series[key] {
		all = append(all, s.Value)
	}
	return all
}

func (a *arrivals) last(key string) float64 {
	if all := a.values(key); len(all) > 0 {
		return all[len(all)-1]
	}
	return 0
}

// intake is an agent with all receivers, and what its target got.
type intake struct {
	*agent
	*arrivals
	write, push, text, otlp, grpc string // host:port
}

// startIntake starts an agent with every receiver.
func startIntake(t *testing.T) *intake {
	t.Helper()
	in := &intake{arrivals: &arrivals{series: map[string][]prompb.Sample{}, native: map[string]int{}}}
	for _, p := range []*string{&in.write, &in.push, &in.text, &in.otlp, &in.grpc} {
		*p = fmt.Sprintf("127.0.0.1:%d", freePort(t))
	}
	target := receiver.New(receiver.Options{Sink: in.add})
	if err := target.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(target.Stop)
	in.agent = startAgent(t, fmt.Sprintf(`
wal: {max_bytes: 1GiB, min_free_bytes: 1MiB}
probes:
  - {name: hwsagent, type: self, enabled: false}
receivers:
  remote_write: {listen: %q}
  pushgateway: {listen: %q, interval: 100ms}
  import: {listen: %q}
  otlp: {http: {listen: %q}, grpc: {listen: %q}, promote_resource_attributes: [deployment.environment]}
remote_write:
`, in.write, in.push, in.text, in.otlp, in.grpc)+
		entry("target", target.URL(), "    send_native_histograms: true\n    metadata_config: {send: false}\n"))
	return in
}

// send posts a body and returns the status, 0 if there was no answer.
func send(t *testing.T, method, url, contentType, encoding string, body []byte) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", contentType)
	if encoding != "" {
		req.Header.Set("Content-Encoding", encoding)
	}
	resp, err := httpClient(t).Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text)
}

// TestReceivingFromPrometheus: Debian's prometheus writes to the agent, which is killed
// meanwhile, and everything that it scraped comes out at the other end.
func TestReceivingFromPrometheus(t *testing.T) {
	t.Parallel()
	program := needs(t, "prometheus")
	in := startIntake(t)
	dir, addr := t.TempDir(), fmt.Sprintf("127.0.0.1:%d", freePort(t))
	config := fmt.Sprintf(`
global: {scrape_interval: 500ms, scrape_timeout: 400ms}
scrape_configs:
  - {job_name: self, static_configs: [{targets: [%q]}]}
remote_write:
  - url: http://%s/api/v1/write
    queue_config: {min_backoff: 50ms, max_backoff: 200ms, batch_send_deadline: 200ms}
`, addr, in.write)
	source := &prometheus{t: t, addr: addr}
	source.process = startProcess(t, program, []string{
		"--config.file=" + writeFile(t, filepath.Join(dir, "prometheus.yml"), config),
		"--storage.tsdb.path=" + filepath.Join(dir, "data"), "--web.listen-address=" + addr, "--log.level=warn",
	}, nil)
	ready(t, source.process, "http://"+addr+"/-/ready")
	key := "scrape_samples_scraped{instance=" + addr + ",job=self}"
	arrived := func(n int) {
		t.Helper()
		eventually(t, 30*time.Second, func() string {
			if got := len(in.values(key)); got < n {
				return fmt.Sprintf("%d samples of %s have arrived", got, key)
			}
			return ""
		})
	}
	arrived(3)
	in.kill()
	in.run()
	arrived(10)

	// What Prometheus has until now must all be there soon.
	stored := source.query("scrape_samples_scraped[1h]")
	if len(stored) != 1 || len(stored[0].Values) < 8 {
		t.Fatalf("the source has only %v", stored)
	}
	want := stored[0].Values
	eventually(t, 30*time.Second, func() string {
		got := map[int64]bool{}
		in.mu.Lock()
		for _, s := range in.series[key] {
			got[s.Timestamp] = true
		}
		in.mu.Unlock()
		missing := 0
		for _, at := range want {
			if !got[at.T] {
				missing++
			}
		}
		if missing > 0 {
			return fmt.Sprintf("%d of %d samples are missing", missing, len(want))
		}
		return ""
	})
}

// TestReceivingFromSDK: OpenTelemetry's Go SDK, by both its exporters, cumulative and in
// deltas, comes out the same.
func TestReceivingFromSDK(t *testing.T) {
	t.Parallel()
	endToEnd(t)
	program, err := buildSDK()
	if err != nil {
		t.Fatal(err)
	}
	for _, way := range []string{"http", "grpc"} {
		for _, delta := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s,delta=%t", way, delta), func(t *testing.T) {
				t.Parallel()
				in := startIntake(t)
				to := in.otlp
				if way == "grpc" {
					to = in.grpc
				}
				if _, said, code := runToEnd(t, time.Minute, program, "-"+way, to, fmt.Sprintf("-delta=%t", delta), "-rounds", "3"); code != 0 {
					t.Fatalf("the program with the SDK ended with %d: %s\n%s", code, said, in.tail(20))
				}
				const of = "deployment_environment=test,instance=i1,job=shop"
				for key, want := range map[string]float64{
					"orders_total{deployment_environment=test,instance=i1,job=shop,kind=book}":  15,
					"size_bytes_count{" + of + "}":                                              3,
					"size_bytes_bucket{deployment_environment=test,instance=i1,job=shop,le=10}": 3,
					"target_info{" + of + "}":                                                   1,
				} {
					eventually(t, 20*time.Second, func() string {
						if got := in.last(key); got != want {
							in.mu.Lock()
							defer in.mu.Unlock()
							var keys []string
							for k := range in.series {
								keys = append(keys, k)
							}
							return fmt.Sprintf("%s is %v, want %v; there are %q", key, got, want, keys)
						}
						return ""
					})
				}
				eventually(t, 20*time.Second, func() string {
					in.mu.Lock()
					defer in.mu.Unlock()
					if n := in.native["wait_seconds{"+of+"}"]; n < 3 {
						return fmt.Sprintf("%d native histograms have arrived", n)
					}
					return ""
				})
			})
		}
	}
}

// TestReceivingPushes: client_golang's push package, and curl.
func TestReceivingPushes(t *testing.T) {
	t.Parallel()
	curl := needs(t, "curl")
	in := startIntake(t)
	g := client.NewGauge(client.GaugeOpts{Name: "last_success"})
	g.Set(42)
	h := client.NewHistogram(client.HistogramOpts{Name: "size", NativeHistogramBucketFactor: 1.1})
	h.Observe(3)
	pusher := push.New("http://"+in.push, "batch").Grouping("path", "/var/tmp").Collector(g).Collector(h).Client(httpClient(t))
	if err := pusher.Push(); err != nil {
		t.Fatal(err)
	}
	shows := func(key string, want float64) {
		t.Helper()
		eventually(t, 20*time.Second, func() string {
			if got := in.last(key); got != want {
				return fmt.Sprintf("%s is %v, want %v", key, got, want)
			}
			return ""
		})
	}
	shows("last_success{job=batch,path=/var/tmp}", 42)
	in.kill()
	in.run()
	n := len(in.values("last_success{job=batch,path=/var/tmp}"))
	eventually(t, 20*time.Second, func() string {
		if len(in.values("last_success{job=batch,path=/var/tmp}")) <= n {
			return "the group is not appended after a restart"
		}
		return ""
	})
	if err := pusher.Delete(); err != nil {
		t.Fatal(err)
	}
	eventually(t, 20*time.Second, func() string {
		if v := in.last("last_success{job=batch,path=/var/tmp}"); v == v { // stale is a NaN
			return fmt.Sprintf("the deleted group shows %v", v)
		}
		return ""
	})
	for _, args := range [][]string{
		{"--data-binary", "curled 7\n", "http://" + in.push + "/metrics/job/c/db/orders"},
		{"--data-binary", "imported 8\n", "http://" + in.text + "/api/v1/import/prometheus?extra_label=site=lab"},
	} {
		if out, err := exec.CommandContext(t.Context(), curl, append([]string{"-sS", "--fail"}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("curl %v: %v\n%s", args, err, out)
		}
	}
	shows("curled{db=orders,job=c}", 7)
	shows("imported{site=lab}", 8)
}

// buildSDK builds e2e/otelsdk, unless HWSAGENT_OTELSDK names the binary.
var buildSDK = sync.OnceValues(func() (string, error) { return buildProgram("otelsdk", "HWSAGENT_OTELSDK", "otelsdk", ".") })
