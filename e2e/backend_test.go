package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// message2 is the protobuf message of remote write 2.0, as protobuf_message names it.
const message2 = "io.prometheus.write.v2.Request"

// backend is a real receiver that the agent writes to, and that lets everything be read
// back as it was stored.
type backend struct {
	// name is the column of it in docs/reference/receivers.md.
	name string
	// entry is the mark of its entry there.
	entry string
	// v2 says that it is written to by remote write 2.0.
	v2 bool
	// window says how old a sample it takes that is not its series' newest; 0: none.
	window time.Duration
	// everything says that it refuses nothing, and keeps of one time all values.
	everything bool
	// queried says that histograms are read by a query: without their kind, and without
	// the markers that end them.
	queried bool

	start func(t *testing.T, b backend) endpoint
}

// endpoint is a running receiver.
type endpoint struct {
	write string // URL
	read  func() contents
	// exemplars are the values of the exemplars of a metric by trace_id; nil where it
	// stores none.
	exemplars func(metric string) map[string]float64
}

// realReceivers returns the receivers of the tests. Their windows are those of the entries.
func realReceivers() []backend {
	const window = 30 * time.Minute
	return []backend{
		{name: "Prometheus 2.42", entry: "prometheus", queried: true, start: startPrometheus2},
		{name: "2.42 + window", entry: "prometheus", window: window, queried: true, start: startPrometheus2},
		{name: "Prometheus 3.15", entry: "prometheus", start: startPrometheus3},
		{name: "3.15 + window", entry: "prometheus", window: window, start: startPrometheus3},
		{name: "3.15 by 2.0", entry: "prometheus-2.0", v2: true, start: startPrometheus3},
		{name: "3.15 by 2.0 + window", entry: "prometheus-2.0", v2: true, window: window, start: startPrometheus3},
		{name: "VictoriaMetrics 1.79", entry: "victoriametrics", everything: true, start: startVictoria},
	}
}

// startPrometheus2 is Debian's prometheus.
func startPrometheus2(t *testing.T, b backend) endpoint {
	t.Helper()
	window := ""
	if b.window > 0 {
		window = fmt.Sprintf("%dm", int(b.window.Minutes()))
	}
	p := startPrometheus(t, window)
	base := "http://" + p.addr
	return endpoint{
		write: p.writeURL(),
		read: func() contents {
			c := remoteRead(t, base+"/api/v1/read")
			// One by one: a query of both kinds leaves some out.
			for _, metric := range []string{"native", "hwsagent_canary_histogram", "hwsagent_canary_float_histogram"} {
				queryHistograms(t, base, metric, c)
			}
			return c
		},
		exemplars: func(metric string) map[string]float64 { return queryExemplars(t, base, metric) },
	}
}

// startPrometheus3 returns the program of e2e/prometheus3: the receiver and the TSDB of the
// Prometheus that the agent's own formats come from.
func startPrometheus3(t *testing.T, b backend) endpoint {
	t.Helper()
	return startPrometheus3With(t, b)
}

// startPrometheus3With is startPrometheus3 with further flags.
func startPrometheus3With(t *testing.T, b backend, flags ...string) endpoint {
	t.Helper()
	endToEnd(t)
	program, err := buildPrometheus3()
	if err != nil {
		t.Fatal(err)
	}
	addr := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	p := startProcess(t, program, append([]string{
		"-listen", addr, "-data", filepath.Join(t.TempDir(), "data"), "-window", b.window.String(),
	}, flags...), nil)
	base := "http://" + addr
	ready(t, p, base+"/-/ready")
	return endpoint{
		write:     base + "/api/v1/write",
		read:      func() contents { return remoteRead(t, base+"/api/v1/read") },
		exemplars: func(metric string) map[string]float64 { return queryExemplars(t, base, metric) },
	}
}

// startVictoria is Debian's victoria-metrics, a single node.
func startVictoria(t *testing.T, b backend) endpoint {
	t.Helper()
	return startVictoriaWith(t, b)
}

// startVictoriaWith is startVictoria with further flags.
func startVictoriaWith(t *testing.T, _ backend, flags ...string) endpoint {
	t.Helper()
	addr := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	p := startProcess(t, needs(t, "victoria-metrics"), append([]string{
		"-storageDataPath=" + filepath.Join(t.TempDir(), "data"),
		"-httpListenAddr=" + addr,
		"-memory.allowedPercent=5",
		"-loggerLevel=WARN",
	}, flags...), nil)
	base := "http://" + addr
	ready(t, p, base+"/health")
	return endpoint{
		write: base + "/api/v1/write",
		read:  func() contents { return victoriaExport(t, base) },
	}
}

// ready waits until a server answers 200.
func ready(t *testing.T, p *process, url string) {
	t.Helper()
	eventually(t, 30*time.Second, func() string {
		if gone := p.ended(); gone != "" {
			t.Fatal(gone)
		}
		resp, err := httpClient(t).Get(url)
		if err != nil {
			return err.Error()
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return url + " is not ready: " + resp.Status
		}
		return ""
	})
}

// buildPrometheus3 builds e2e/prometheus3, unless HWSAGENT_PROMETHEUS3 names the binary.
var buildPrometheus3 = sync.OnceValues(func() (string, error) { return buildProgram("prometheus3", "HWSAGENT_PROMETHEUS3", "prometheus3", ".") })

// TestPrometheus3Version: the receiver is built from the version of prometheus/prometheus
// that the agent's formats come from.
func TestPrometheus3Version(t *testing.T) {
	version := func(file string) string {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, after, _ := strings.Cut(string(b), "github.com/prometheus/prometheus ")
		return strings.Fields(after + " ")[0]
	}
	if ours, theirs := version("../go.mod"), version("prometheus3/go.mod"); ours != theirs || ours == "" {
		t.Errorf("go.mod has prometheus/prometheus %q, e2e/prometheus3/go.mod has %q", ours, theirs)
	}
}
