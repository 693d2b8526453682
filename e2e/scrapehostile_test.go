package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"hwsagent/internal/tools/tier"
)

// rawServer answers the first request of each connection by hand. The connection stays open until
// the client closes it, or the test ends. It returns host:port.
func rawServer(t *testing.T, answer func(w io.Writer)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	open := map[net.Conn]bool{}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open[c] = true
			mu.Unlock()
			all.Go(func() {
				defer c.Close()
				if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
					answer(c)
					_, _ = io.Copy(io.Discard, c) // until the client goes
				}
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for c := range open {
			c.Close()
		}
		mu.Unlock()
		all.Wait()
	})
	return l.Addr().String()
}

// says answers with text, and what more writes until that fails.
func says(head string, more func(i int) string) func(io.Writer) {
	return func(w io.Writer) {
		_, err := io.WriteString(w, head)
		for i := 0; err == nil && more != nil; i++ {
			text := more(i)
			if text == "" {
				return
			}
			_, err = io.WriteString(w, text)
		}
	}
}

const (
	switched = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"
	textPage = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nConnection: close\r\n\r\n"
	jsonPage = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
)

// whole answers with a body of known length.
func whole(kind, body string) func(io.Writer) {
	return says(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", kind, len(body), body), nil)
}

func lines(n int, line string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, line+"\n", i)
	}
	return b.String()
}

// TestScrapeHostile: whatever a target or a list of targets answers costs that job only. Another job
// goes on, the agent says what is wrong, its memory stays bounded, and it stops in time.
func TestScrapeHostile(t *testing.T) {
	t.Parallel()
	endToEnd(t)
	long := strings.Repeat("y", 17_000_000)
	drip := func(int) string { time.Sleep(50 * time.Millisecond); return "a" } // the pace of the fault
	static := func(more string) string {
		return "metrics_path: /m, static_configs: [{targets: [SERVER]}]" + more
	}
	overHTTP := "http_sd_configs: [{url: 'http://SERVER/sd', refresh_interval: 1s}]"
	double := "{source_labels: [x], target_label: x, replacement: '$1$1'}" + strings.Repeat(", {source_labels: [x], target_label: x, replacement: '$1$1'}", 29)
	for name, tc := range map[string]struct {
		answer func(io.Writer)
		job    string // the entry but for its name; SERVER is the server's address
		global string
		file   string // content of list.json
		want   string // in what the agent says of the job
	}{
		"101":                           {answer: says(switched, nil), job: static(""), want: "101"},
		"101 that goes on":              {answer: says(switched, drip), job: static(""), want: "101"},
		"a body that drips":             {answer: says(textPage, drip), job: static(""), want: "deadline exceeded"},
		"a body without end":            {answer: says(textPage, func(i int) string { return lines(1000, fmt.Sprintf("a{n=\"%d.%%d\"} 1", i)) }), job: static(""), want: "body size limit"},
		"a line without end":            {answer: says(textPage+"a{x=\"", func(int) string { return long[:65536] }), job: static(""), want: "body size limit"},
		"a label of 17 MB":              {answer: whole("text/plain", "a{x=\""+long+"\"} 1\n"), job: static(""), want: "body size limit"},
		"that label, let in":            {answer: whole("text/plain", "a{x=\""+long+"\"} 1\n"), job: static(", body_size_limit: 100MB"), want: "bound"},
		"that label, converted":         {answer: whole("text/plain", "# TYPE a histogram\na_bucket{x=\""+long+"\",le=\"+Inf\"} 1\n"), job: static(", body_size_limit: 100MB, convert_classic_histograms_to_nhcb: true"), want: "bound"},
		"an exemplar of 17 MB":          {answer: whole("application/openmetrics-text", "# TYPE a counter\na_total 1 # {x=\""+long+"\"} 1\n# EOF\n"), job: static(", body_size_limit: 100MB"), want: "bound"},
		"a million series":              {answer: whole("text/plain", lines(1_000_000, "a%d 1")), job: static(""), want: "sample limit"},
		"a broken exemplar":             {answer: whole("application/openmetrics-text", "# TYPE a counter\na_total 1\na_total 2 # {a=7\n# EOF\n"), job: static(""), global: "scrape_start_timestamps: true, ", want: "expected"},
		"rules that double":             {answer: whole("text/plain", "a{x=\"0123456789\"} 1\n"), job: static(", metric_relabel_configs: [" + double + "]"), want: "after relabelling rule"},
		"a token endpoint that is 101":  {answer: says(switched, nil), job: "static_configs: [{targets: ['127.0.0.1:1']}], oauth2: {client_id: a, client_secret: b, token_url: 'http://SERVER/t'}", want: "101"},
		"a token endpoint that hangs":   {answer: func(io.Writer) {}, job: "static_configs: [{targets: ['127.0.0.1:1']}], oauth2: {client_id: a, client_secret: b, token_url: 'http://SERVER/t'}", want: "deadline exceeded"},
		"a list that is 101":            {answer: says(switched, nil), job: overHTTP, want: "101"},
		"a list that drips":             {answer: says(jsonPage+"[", drip), job: overHTTP, want: "deadline exceeded"},
		"a list without end":            {answer: says(jsonPage+"[{\"targets\": [", func(int) string { return strings.Repeat("\"a:1\",", 10_000) }), job: overHTTP, want: "more than 15728640 bytes"},
		"a list of a million":           {answer: whole("application/json", "[{\"targets\": ["+strings.Repeat("\"a:1\",", 1_000_000)+"\"a:1\"]}]"), job: overHTTP, want: "lists 1000001 targets"},
		"a list with a label of 10 MB":  {answer: whole("application/json", "[{\"targets\": [\"127.0.0.1:1\"], \"labels\": {\"x\": \""+long[:10_000_000]+"\"}}]"), job: overHTTP, want: "the labels have 1000"},
		"a file with a label of 17 MB":  {job: "file_sd_configs: [{files: [DIR/list.json]}]", file: "[{\"targets\": [\"127.0.0.1:1\"], \"labels\": {\"x\": \"" + long + "\"}}]", want: "more than 15728640 bytes"},
		"rules for targets that double": {job: "static_configs: [{targets: ['127.0.0.1:1'], labels: {x: '0123456789'}}], relabel_configs: [" + double + "]", want: "after relabelling rule"},
	} {
		t.Run(name, func(t *testing.T) {
			good := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "a 1\n") }))
			defer good.Close()
			server := "127.0.0.1:1"
			if tc.answer != nil {
				server = rawServer(t, tc.answer)
			}
			a := newAgent(t, strings.ReplaceAll("global: {"+tc.global+"scrape_interval: 1s, scrape_timeout: 1s}\nprobes: [{name: hwsagent, type: self, enabled: false}]\nscrape_configs:\n"+
				"  - {job_name: good, static_configs: [{targets: ['"+strings.TrimPrefix(good.URL, "http://")+"']}]}\n"+
				"  - {job_name: bad, "+tc.job+"}\n", "SERVER", server))
			if tc.file != "" {
				writeFile(t, filepath.Join(a.dir, "list.json"), tc.file)
			}
			a.run()
			t.Cleanup(a.kill)
			var peak uint64
			eventually(t, 30*time.Second, func() string {
				if gone := a.ended(); gone != "" {
					t.Fatalf("%s: %.300s", gone, a.tail(30))
				}
				peak = max(peak, a.rss())
				said := saidOf(t, a, "bad")
				if !strings.Contains(said, tc.want) {
					return fmt.Sprintf("of the job it says %.300q, want %q in it", said, tc.want)
				}
				return ""
			})
			var before time.Time
			eventually(t, 20*time.Second, func() string {
				peak = max(peak, a.rss())
				now := lastScrape(t, a, "good")
				if before.IsZero() {
					before = now
				}
				if before.IsZero() || now.Sub(before) < 2*time.Second {
					return "the other job does not go on"
				}
				return ""
			})
			if log := a.logText(); strings.Contains(log, "panic") {
				t.Errorf("something panicked:\n%.2000s", log)
			}
			took, code := a.terminate(30 * time.Second)
			if took > tier.Within(2*time.Second) || code != 0 {
				t.Errorf("stopped after %s with code %d", took, code)
			}
			t.Logf("peak of RSS %d MB, stopped after %s", peak/1e6, took)
			if peak > 600e6 {
				t.Errorf("it took %d MB", peak/1e6)
			}
		})
	}
}

// apiTarget is one of GET /api/v1/targets.
type apiTarget struct {
	ScrapePool, Health, LastError string
	LastScrape                    time.Time
}

func apiTargets(t *testing.T, a *agent) []apiTarget {
	t.Helper()
	_, body, err := a.ask(http.MethodGet, "/api/v1/targets")
	var answer struct {
		Data struct{ ActiveTargets []apiTarget }
	}
	if err == nil {
		err = json.Unmarshal([]byte(body), &answer)
	}
	if err != nil {
		t.Fatal(err)
	}
	return answer.Data.ActiveTargets
}

// saidOf returns what the agent says is wrong with a job: of its targets, of itself, and in the log.
func saidOf(t *testing.T, a *agent, job string) string {
	t.Helper()
	var said []string
	for _, one := range apiTargets(t, a) {
		if one.ScrapePool == job {
			said = append(said, one.LastError)
		}
	}
	var answer struct {
		Scrape []struct {
			Job   string
			Error string `json:"job_error"`
		}
	}
	_, body, err := a.ask(http.MethodGet, "/api/v1/status")
	if err == nil {
		err = json.Unmarshal([]byte(body), &answer)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range answer.Scrape {
		if one.Job == job {
			said = append(said, one.Error)
		}
	}
	for line := range strings.Lines(a.logText()) {
		if strings.Contains(line, "ERROR") || strings.Contains(line, "level=error") || strings.Contains(line, "\"error\"") {
			said = append(said, line)
		}
	}
	return strings.Join(said, "\n")
}

func lastScrape(t *testing.T, a *agent, job string) time.Time {
	t.Helper()
	for _, one := range apiTargets(t, a) {
		if one.ScrapePool == job {
			return one.LastScrape
		}
	}
	return time.Time{}
}
