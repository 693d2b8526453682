package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

// side is one of the two that a replay compares.
type side struct {
	push, metrics string // URLs: that requests go to, and that shows the groups
}

// startPushgateway starts Debian's Pushgateway, or the program that HWSAGENT_PUSHGATEWAY names,
// and returns its version, too. From 1.11 on it takes UTF-8 names, if it is asked to.
func startPushgateway(t *testing.T) (side, string) {
	t.Helper()
	endToEnd(t)
	program := os.Getenv("HWSAGENT_PUSHGATEWAY")
	if program == "" {
		program = needs(t, "prometheus-pushgateway")
	}
	said, err := exec.CommandContext(t.Context(), program, "--version").CombinedOutput()
	m := regexp.MustCompile(`version ([0-9]+\.[0-9]+)`).FindSubmatch(said)
	if err != nil || m == nil {
		t.Fatalf("%s --version: %v\n%s", program, err, said)
	}
	version := string(m[1])
	addr := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	args := []string{"--web.listen-address=" + addr, "--log.level=error"}
	if !olderThan(version, "1.11") {
		args = append(args, "--push.enable-utf8-names")
	}
	p := startProcess(t, program, args, nil)
	ready(t, p, "http://"+addr+"/-/ready")
	return side{"http://" + addr, "http://" + addr + "/metrics"}, version
}

// startPushed starts an agent with a pushgateway, whose pull endpoint shows the groups.
func startPushed(t *testing.T) side {
	t.Helper()
	push, pull := freePort(t), freePort(t)
	startAgent(t, fmt.Sprintf(`
pull: {listen: "127.0.0.1:%d"}
receivers: {pushgateway: {listen: "127.0.0.1:%d", interval: 100ms}}
`, pull, push))
	return side{fmt.Sprintf("http://127.0.0.1:%d", push), fmt.Sprintf("http://127.0.0.1:%d/metrics", pull)}
}

// olderThan compares versions such as 1.5 and 1.11.
func olderThan(a, b string) bool {
	number := func(v string) int {
		major, minor, _ := strings.Cut(v, ".")
		x, _ := strconv.Atoi(major)
		y, _ := strconv.Atoi(minor)
		return 1000*x + y
	}
	return number(a) < number(b)
}

// do sends a request of a case and returns the status, 0 if there is no answer for ten seconds. Redirects are not followed, and those
// that differ between versions of Go's router only by their number count as 301.
func (s side) do(t *testing.T, r pushRequest) int {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), r.method, s.push+r.path, bytes.NewReader(r.body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(r.headers); i += 2 {
		q.Header.Set(r.headers[i], r.headers[i+1])
	}
	if host := q.Header.Get("Host"); host != "" {
		q.Host = host
	}
	client := httpClient(t)
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := client.Do(q)
	if os.IsTimeout(err) {
		return 0
	}
	if err != nil {
		t.Fatalf("%s %s: %v", r.method, r.path, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 == 3 {
		return http.StatusMovedPermanently
	}
	return resp.StatusCode
}

var caseName = regexp.MustCompile(`\bc[0-9]{3}`)

// shows returns what a side shows of each case, by the case's name: series with their values, and the
// types of families. The times of pushes only are there or not; a label without a value is none.
func (s side) shows(t *testing.T) map[string][]string {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.metrics, nil)
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Accept", "text/plain; version=1.0.0; escaping=allow-utf-8")
	resp, err := httpClient(t).Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %v\n%.500s", s.metrics, resp.StatusCode, err, text)
	}
	all := map[string][]string{}
	add := func(line string) {
		if name := caseName.FindString(line); name != "" {
			all[name] = append(all[name], line)
		}
	}
	p, err := textparse.New(text, "text/plain", labels.NewSymbolTable(), textparse.ParserOptions{})
	if p == nil {
		t.Fatal(err)
	}
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v", s.metrics, err)
		}
		switch entry {
		case textparse.EntryType:
			name, kind := p.Type()
			add(fmt.Sprintf("TYPE %s %s", name, kind))
		case textparse.EntrySeries:
			var ls labels.Labels
			p.Labels(&ls)
			_, _, v := p.Series()
			add(shown(ls, v))
		}
	}
	for _, lines := range all {
		slices.Sort(lines)
	}
	return all
}

func shown(ls labels.Labels, v float64) string {
	value := strconv.FormatFloat(v, 'g', -1, 64)
	if name := ls.Get(model.MetricNameLabel); strings.HasPrefix(name, "push_") && v > 0 {
		value = "set"
	}
	lb := labels.NewBuilder(ls)
	ls.Range(func(l labels.Label) {
		bound, err := strconv.ParseFloat(l.Value, 64)
		switch {
		case l.Value == "":
			lb.Del(l.Name)
		case err == nil && (l.Name == "le" || l.Name == "quantile") && !math.IsInf(bound, 0):
			lb.Set(l.Name, strconv.FormatFloat(bound, 'g', -1, 64))
		}
	})
	return lb.Labels().String() + " " + value
}

// settled waits until the agent shows all groups as they are now: a group that is pushed
// now is shown, in two rounds one after the other.
func (s side) settled(t *testing.T, n int) {
	t.Helper()
	for half := range 2 {
		want := fmt.Sprintf(`{__name__="c999_barrier", job="c999"} %d`, 2*n+half)
		if status := s.do(t, pushRequest{method: "PUT", path: "/metrics/job/c999", body: fmt.Appendf(nil, "c999_barrier %d\n", 2*n+half)}); status != http.StatusOK {
			t.Fatalf("the barrier is answered with %d", status)
		}
		eventually(t, 20*time.Second, func() string {
			if got := s.shows(t)["c999"]; !slices.Contains(got, want) {
				return fmt.Sprintf("the agent shows %q, not %s", got, want)
			}
			return ""
		})
	}
}

// TestPushgatewayReplay sends the documented cases of the Pushgateway's API to a Pushgateway and
// to the agent, and compares each status, and what both show after each step. Where they differ
// docs/reference/receivers.md must say so, and nowhere else.
func TestPushgatewayReplay(t *testing.T) {
	t.Parallel()
	theirs, version := startPushgateway(t)
	ours := startPushed(t)
	cases := pushCases()
	found := make([][]string, len(cases))
	requests, steps := 0, 0
	for _, c := range cases {
		requests += len(c.requests)
		steps = max(steps, len(c.requests))
	}
	if requests < 150 {
		t.Errorf("only %d requests are replayed", requests)
	}
	documented := replayDoc(t)
	for step := range steps {
		for i, c := range cases {
			if step >= len(c.requests) {
				continue
			}
			r := c.requests[step].of(i)
			there, here := theirs.do(t, r), ours.do(t, r)
			if there != here {
				said := fmt.Sprintf("%s %s: %d there, %d here", r.method, r.path, there, here)
				found[i] = append(found[i], said)
				row := documented[c.differs]
				if c.differs != "" && (!strings.Contains(row.theirs, strconv.Itoa(there)) || !strings.Contains(row.ours, strconv.Itoa(here))) {
					t.Errorf("%s: docs/reference/receivers.md lacks the status in the row %q: %s", c.name, c.differs, said)
				}
			}
		}
		ours.settled(t, step)
		a, b := theirs.shows(t), ours.shows(t)
		for i, c := range cases {
			name := nameOfCase(i)
			if diff := cmp.Diff(a[name], b[name]); diff != "" && step < len(c.requests) {
				found[i] = append(found[i], fmt.Sprintf("after request %d (-there +here):\n%s", step+1, diff))
			}
		}
	}
	differ := map[string]bool{}
	same := 0
	for i, c := range cases {
		row, ok := documented[c.differs]
		aged := row.since != "" && !olderThan(version, row.since)
		switch {
		case c.differs != "" && !ok:
			t.Errorf("%s: docs/reference/receivers.md has no row %q", c.name, c.differs)
		case (c.differs == "" || aged) && len(found[i]) > 0:
			t.Errorf("%s (%s): not documented as different:\n%s", c.name, nameOfCase(i), strings.Join(found[i], "\n"))
		case c.differs != "" && !aged && len(found[i]) == 0:
			t.Errorf("%s: said to differ (%q), and does not", c.name, c.differs)
		}
		if len(found[i]) == 0 {
			same++
		}
		differ[c.differs] = true
	}
	for _, key := range slices.Sorted(maps.Keys(documented)) {
		if !differ[key] {
			t.Errorf("docs/reference/receivers.md has the row %q, and no case differs so", key)
		}
	}
	t.Logf("%d requests in %d cases; %d cases are the same as of Pushgateway %s", requests, len(cases), same, version)
}

// replayRow is a row of the table of differences in docs/reference/receivers.md.
type replayRow struct {
	theirs, ours string
	since        string // the version of the Pushgateway that does as the agent; "" if none
}

// replayDoc reads the table, by the first cell of each row.
func replayDoc(t *testing.T) map[string]replayRow {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "docs", "reference", "receivers.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "<!-- differences from the Pushgateway -->\n")
	table, _, end := strings.Cut(rest, "\n\n")
	if !ok || !end {
		t.Fatal("docs/reference/receivers.md has no table of differences from the Pushgateway")
	}
	rows := map[string]replayRow{}
	since := regexp.MustCompile(`^([0-9]+\.[0-9]+) `)
	for i, line := range strings.Split(table, "\n") {
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if len(cells) != 4 {
			t.Fatalf("docs/reference/receivers.md: not four cells: %s", line)
		}
		for j := range cells {
			cells[j] = strings.TrimSpace(cells[j])
		}
		if i < 2 {
			continue
		}
		row := replayRow{theirs: cells[1], ours: cells[2]}
		if m := since.FindStringSubmatch(cells[3]); m != nil {
			row.since = m[1]
		}
		rows[cells[0]] = row
	}
	return rows
}
