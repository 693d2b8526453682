package web

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"hwsagent/agent/status"
)

// render returns the page of a status.
func render(t *testing.T, s status.Status, events []status.Event) string {
	t.Helper()
	rec := httptest.NewRecorder()
	(&handlers{o: Options{Status: func() status.Status { return s }, Events: func() []status.Event { return events }}}).page(rec, httptest.NewRequest(http.MethodGet, "/", nil))
	if rec.Code != 200 {
		t.Fatalf("the page: %d\n%s", rec.Code, rec.Body)
	}
	return rec.Body.String()
}

// fleet returns an agent with targets that all are well.
func fleet(targets int) status.Status {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	s := status.Status{
		Schema: 1, Running: true, Host: "plant-7", Now: now, Started: now.Add(-time.Hour), Config: status.ConfigStatus{File: "/etc/hwsagent/agent.yaml", LoadedAt: now.Add(-time.Hour)},
		WAL: status.WALStatus{Dir: "/var/lib/hwsagent/wal", Sync: "1s", Segments: 4, Bytes: 30 << 20, MaxBytes: 4 << 30, FreeBytes: 90 << 30, Appended: 1e6, SamplesPerSec: 400, BytesPerSec: 900, Series: 800},
	}
	for i := range 6 {
		s.Probes = append(s.Probes, status.ProbeStatus{Name: fmt.Sprintf("probe-%d", i), Type: "snmp", Target: fmt.Sprintf("192.0.2.%d:161", i), State: "ok", Interval: 15 * time.Second, LastRun: now.Add(-3 * time.Second), Took: 40 * time.Millisecond, Samples: 812})
	}
	for i := range targets {
		s.Targets = append(s.Targets, status.TargetStatus{
			Name: fmt.Sprintf("receiver-%02d", i), URL: fmt.Sprintf("https://mimir-%02d.plant.example/api/v1/push", i), State: status.StateOK, LagSeconds: 1.2, OldestPending: now.Add(-1200 * time.Millisecond),
			PendingSamples: 412, PendingBytes: 9000, SentPerSec: 400, LastSuccess: now.Add(-time.Second), Shards: 1, MaxShards: 4,
			Ledger: status.LedgerStatus{Appended: 1e6, Delivered: 1e6 - 412, Pending: 412, Balanced: true},
		})
	}
	return s
}

// breakTarget makes a target take nothing since so long.
func breakTarget(t *status.TargetStatus, now time.Time, state, why string, since time.Duration, waiting uint64) {
	t.State, t.Why, t.LastError, t.LastErrorAt, t.LagSeconds = state, why, "post to "+t.URL+": "+why, now.Add(-time.Second), since.Seconds()
	t.OldestPending, t.PendingSamples, t.PendingBytes, t.LastSuccess, t.SentPerSec = now.Add(-since), waiting, int64(waiting)*2, now.Add(-since), 0
	t.Ledger.Pending, t.Ledger.Delivered, t.NextTry = waiting, t.Ledger.Appended-waiting, now.Add(30*time.Second)
}

// brokenFleet has three targets of so many that take nothing, each for a reason of its own.
func brokenFleet(targets int) (status.Status, []status.Event) {
	s := fleet(targets)
	a, b, c := &s.Targets[7], &s.Targets[21], &s.Targets[targets-1]
	breakTarget(a, s.Now, status.StateHeld, "401 Unauthorized: the token is not known", 12*time.Minute, 288_000)
	a.Failure, a.Try = "credentials", "renew the token in /etc/hwsagent/seven.token"
	breakTarget(b, s.Now, status.StateRetrying, "dial tcp 192.0.2.21:443: connect: connection refused", 34*time.Minute, 816_000)
	b.Failure, b.Try = "network", "start the receiver, or correct the URL"
	c.Why, c.LastError = "", ""
	breakTarget(c, s.Now, status.StatePaused, "paused with hwsagent targets pause", 51*time.Minute, 900_000)
	c.LastError, c.PausedSince = "", s.Now.Add(-51*time.Minute)
	s = status.Judge(s)
	return s, []status.Event{
		{Time: s.Now.Add(-25 * time.Hour), Kind: "lost", Subject: "target receiver-01", Text: "an event of yesterday"},
		{Time: s.Now.Add(-51 * time.Minute), Kind: "paused", Subject: "target " + c.Name, Text: "paused by command"},
		{Time: s.Now.Add(-34 * time.Minute), Kind: "down", Subject: "target " + b.Name, Text: b.Why},
		{Time: s.Now.Add(-12 * time.Minute), Kind: "held", Subject: "target " + a.Name, Text: a.Why},
	}
}

// row is a row of the page with problems: what a reader sees before it opens, by the places of the row, and all of it.
type row struct{ state, name, cause, since, cost, whole string }

// problemRows reads the rows with problems from a page.
func problemRows(t *testing.T, body string) (rows []row) {
	t.Helper()
	list, err := html.Parse(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	words := func(n *html.Node) string {
		var b strings.Builder
		for one := range n.Descendants() {
			if one.Type == html.TextNode {
				b.WriteString(one.Data)
			}
		}
		return strings.Join(strings.FieldsFunc(b.String(), func(r rune) bool { return r == ' ' || r == '\n' }), " ")
	}
	class := func(n *html.Node) string {
		for _, a := range n.Attr {
			if a.Key == "class" {
				return a.Val
			}
		}
		return ""
	}
	for n := range list.Descendants() {
		if n.Data != "details" || class(n.Parent) != "rows things" {
			continue
		}
		r := row{whole: words(n)}
		for one := range n.FirstChild.NextSibling.ChildNodes() {
			switch text := words(one); class(one) {
			case "state":
				r.state = text
			case "name":
				r.name = text
			case "cause":
				r.cause = text
			case "when":
				r.since = text
			case "cost":
				r.cost = text
			}
		}
		rows = append(rows, r)
	}
	return rows
}

// plant has 20 targets of which 6 are broken, each in a way of its own, and 8 probes.
func plant() (status.Status, []status.Event) {
	s := fleet(20)
	for i := range 2 {
		p := s.Probes[i]
		p.Name = fmt.Sprintf("host-%d", i)
		s.Probes = append(s.Probes, p)
	}
	for i, b := range []struct{ state, failure, why, try string }{
		{status.StateRetrying, "connection_refused", "connection refused by 192.0.2.10:9090", "start the receiver, or correct the host and port in its url; a firewall may also refuse port 9090"},
		{status.StateHeld, "credentials", "the receiver refuses access: 401 Unauthorized: the token is not known", "put a valid token into /etc/hwsagent/credentials/mimir-eu.token; no reload is needed"},
		{status.StateHeld, "path", "404 Not Found: 404 page not found", "change the path of url: to the receiver's write path: /api/v1/write (Prometheus, started with --web.enable-remote-write-receiver), /api/v1/push (Cortex, Mimir), /api/v1/receive (Thanos)"},
		{status.StateHeld, "certificate_expired", "the certificate of mimir-03.plant.example has expired: it ended on 2026-11-19", "renew the receiver's certificate, or set this host's clock if that is wrong (chrony, systemd-timesyncd)"},
		{status.StateHeld, "too_large", "413 Request Entity Too Large, for a request of one sample", "raise the limit of the proxy (nginx: client_max_body_size), or the receiver's (VictoriaMetrics: -maxInsertRequestSize; Mimir: -distributor.max-recv-msg-size)"},
		{status.StateRetrying, "unknown_host", "no address for cortex.plant.example: no such host", "correct the host in url:, or add the name to DNS; /etc/resolv.conf names the servers that are asked"},
	} {
		t := &s.Targets[3*i]
		breakTarget(t, s.Now, b.state, b.why, time.Duration(7+13*i)*time.Minute, uint64(20_000+9000*i))
		t.Failure, t.Try, t.Permanent = b.failure, b.try, b.state == status.StateHeld
	}
	s = status.Judge(s)
	var events []status.Event
	for i := range 6 {
		t := s.Targets[3*i]
		events = append(events, status.Event{Time: t.LastSuccess, Kind: "down", Subject: "target " + t.Name, Text: t.Why})
	}
	return s, events
}

// Of 20 targets of which 6 are broken, the closed rows say in this order the worst, each with its cause in few words, since when,
// what it costs and what to do; there is no second list of problems, and no second row of a thing.
func TestRowsSayWhatIsWrong(t *testing.T) {
	s, events := plant()
	body := render(t, s, events)
	rows := problemRows(t, body)
	if len(rows) != 6 {
		t.Fatalf("%d rows with problems: %+v", len(rows), rows)
	}
	for i, want := range []row{
		{"retrying", "receiver-00 target", "connection refused by 192.0.2.10:9090 Try: start the receiver", "since 11:53:00 7 min", "20\u202f000 samples waiting none lost", ""},
		{"held", "receiver-03 target", "receiver refuses access: 401 Unauthorized Try: put a valid token", "since 11:40:00 20 min", "29\u202f000 samples waiting none lost", "401 Unauthorized: the token is not known"},
		{"held", "receiver-06 target", "404 Not Found: 404 page not found Try: change the path", "since 11:27:00 33 min", "38\u202f000 samples waiting none lost", ""},
		{"held", "receiver-09 target", "certificate of mimir-03.plant.example has expired Try: renew", "since 11:14:00 46 min", "47\u202f000 samples waiting none lost", "it ended on 2026-11-19"},
		{"held", "receiver-12 target", "413 Request Entity Too Large, for a request … Try: raise the limit", "since 11:01:00 59 min", "56\u202f000 samples waiting none lost", "for a request of one sample"},
		{"retrying", "receiver-15 target", "no address for cortex.plant.example: no such host Try: correct the host in url:", "since 10:48:00 72 min", "65\u202f000 samples waiting none lost", "room for "},
	} {
		got := rows[i]
		if got.state != want.state || got.name != want.name || !strings.HasPrefix(got.cause, want.cause) || got.since != want.since ||
			!strings.HasPrefix(got.cost, want.cost) || !strings.Contains(got.whole, want.whole) {
			t.Errorf("row %d is %+v,\nwant %+v", i, got, want)
		}
	}
	if n := strings.Count(body, "<details"); n != 20+8+1 {
		t.Errorf("%d rows, want one for each target and probe, and the log's", n)
	}
}

// A target that is down for a short time is a warning, because that may pass; its row says so. One that waits for a person is an error at once.
func TestWarningMayPass(t *testing.T) {
	s := fleet(3)
	breakTarget(&s.Targets[0], s.Now, status.StateRetrying, "connection refused", 90*time.Second, 9)
	breakTarget(&s.Targets[1], s.Now, status.StateRetrying, "the certificate has expired", 90*time.Second, 9)
	s.Targets[1].Permanent = true
	body := render(t, status.Judge(s), nil)
	rows := problemRows(t, body)
	if len(rows) != 2 || rows[0].name != "receiver-01 target" || rows[0].since != "since 11:58:30 90 s" || rows[1].since != "since 11:58:30 90 s, may pass" {
		t.Errorf("the rows do not say why one is worse: %+v", rows)
	}
}

// A cause in few words keeps what says most.
func TestFewWords(t *testing.T) {
	for text, want := range map[string]string{
		"connection refused by 127.0.0.1:1": "connection refused by 127.0.0.1:1",
		"the receiver, or a proxy in front of it, finds the request too large: 413 Request Entity Too Large":                                                  "413 Request Entity Too Large",
		"not asked before 10:21:32, because every request since 2026-11-29 10:18:56 failed: udp 127.0.0.1:1: connection refused: no SNMP agent listens there": "udp 127.0.0.1:1: connection refused",
		"refuses every sample: the receiver, or a proxy in front of it, finds the request too large: 413 Request Entity Too Large":                            "refuses every sample: 413 Request Entity Too Large",
		"the receiver refuses access: 401 Unauthorized: the token is not known":                                                                               "receiver refuses access: 401 Unauthorized",
		"samples lost: the log, or the target's max_backlog, was full":                                                                                        "samples lost: the log, or the target's max_backlog …",
		"this host's clock is 20 min behind the receiver's":                                                                                                   "host's clock is 20 min behind the receiver's",
		"its credential files cannot be used: open /etc/t: no such file or directory":                                                                         "credential files cannot be used: open /etc/t",
		"the certificate of 127.0.0.1:1 is not trusted: certificate of \"CN=a\", issued by \"CN=a\"":                                                          "certificate of 127.0.0.1:1 is not trusted",
		"200 OK: a web page, no receiver: Welcome to the portal":                                                                                              "200 OK: a web page, no receiver",
		"one two three four five six seven eight nine":                                                                                                        "one two three four five six seven eight …",
		"": "",
	} {
		if got := fewWords(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

// site has so many machines with a component of each kind; two of them have failed parts.
func site(machines int, now time.Time) (all []status.Component) {
	for i := range machines {
		device, seen := fmt.Sprintf("node-%02d", i+1), now.Add(-4*time.Second)
		add := func(id, kind, name, vendor, model, state string) *status.Component {
			all = append(all, status.Component{Device: device, ID: id, Type: kind, Name: name, Vendor: vendor, Model: model, State: state, Parent: "chassis", Since: now.Add(-30 * time.Hour), First: true, Seen: seen})
			return &all[len(all)-1]
		}
		add("chassis", "enclosure", "chassis", "Dell Inc.", "PowerEdge R760", "ok")
		add("disk0", "physical_disk", "Disk 0", "SEAGATE", "ST16000NM", "ok")
		add("disk1", "physical_disk", "Disk 1", "SEAGATE", "ST16000NM", "ok")
		add("fan1", "fan", "Fan 1", "", "", "ok")
		add("psu1", "power_supply", "PSU 1", "Delta", "DPS-1400", "ok")
		cpu := add("cpu1", "cpu", "CPU 1", "Intel", "Xeon 6430", "ok")
		cpu.Celsius, cpu.Limit = 40+float64(i), 90
		all = append(all, status.Component{Device: device, Watts: 300 + 10*float64(i), Seen: seen})
	}
	disk, supply := &all[2], &all[4]
	disk.State, disk.Since, disk.First, disk.Serial = "predicted_failure", now.Add(-26*time.Hour), false, "ZL2A77"
	supply.State, supply.Since, supply.First = "failed", now.Add(-40*time.Minute), false
	all[5].Celsius = 87
	return all
}

// The hardware stands on the page: counts by kind and state, what fails or will with its maker, place and since when, temperatures
// beside their limits, and power; each value says how old it is.
func TestHardware(t *testing.T) {
	s := status.Judge(fleet(1))
	v := newHardware(s, site(12, s.Now), false)
	if v.Count != "72 components" || v.Machines != 12 || v.Total != "4260 W" || v.More != 0 || len(v.Hot) != mostHot || len(v.Power) != mostPower {
		t.Errorf("%+v", v)
	}
	if diff := cmp.Diff([]componentView{
		{status.SeverityError, "failed", "PSU 1", "power supply", "node-01", "chassis", "Delta DPS-1400", "since", "40 min", "4 s ago", "replace it", moment{"11:20:00", "2026-11-20T11:20:00Z"}},
		{status.SeverityWarning, "predicted failure", "Disk 1", "physical disk", "node-01", "chassis", "SEAGATE ST16000NM ZL2A77", "since", "26 h", "4 s ago", "copy its data and replace it before it fails; serial ZL2A77", moment{"Nov 19 10:00", "2026-11-19T10:00:00Z"}},
	}, v.Worst); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]kindView{
		{status.SeverityError, "power supply", "12", "1 failed"}, {status.SeverityWarning, "physical disk", "24", "1 predicted failure"},
		{status.LevelOK, "cpu", "12", ""}, {status.LevelOK, "enclosure", "12", ""}, {status.LevelOK, "fan", "12", ""},
	}, v.Kinds); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(gaugeView{status.SeverityWarning, "node-01", "CPU 1", "87 °C", "of 90 °C,", "4 s ago", 96}, v.Hot[0]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(gaugeView{status.LevelOK, "node-12", "", "410 W", "", "4 s ago", 100}, v.Power[0]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Every kind of thing has rows of one form: a probe, a scrape job, a receiver, the log and the configuration say what is wrong, too.
func TestEveryKindHasRows(t *testing.T) {
	s := fleet(2)
	s.Probes[0].State, s.Probes[0].Failures, s.Probes[0].LastError = "failing", 9, "no answer within 10s"
	s.Scrape = []status.ScrapeStatus{{Job: "node", Targets: []status.ScrapeTargetStatus{{URL: "http://10.0.0.1:9100/metrics", Health: status.HealthDown, LastError: "context deadline exceeded", Interval: "15s", LastScrape: s.Now, DownSince: s.Now.Add(-4 * time.Minute)}}}}
	s.Receivers = []status.ReceiverStatus{{Name: "otlp", Listen: "127.0.0.1:4318", Requests: 20, RefusedRequests: map[string]uint64{"too_large": 14}, LastError: "too large", LastErrorAt: s.Now.Add(-time.Minute), LastRequest: s.Now}}
	s.Config.ReloadError, s.Config.ReloadedAt, s.Config.ReloadMistakes = "agent.yaml:3:1: unknown key\n  3 | x", s.Now.Add(-5*time.Minute), 2
	s.Losses = []status.LossStatus{{Target: "receiver-01", Reason: "budget", Samples: 1200, FirstAt: s.Now.Add(-2 * time.Hour), LastAt: s.Now.Add(-time.Hour)}}
	rows := problemRows(t, render(t, status.Judge(s), nil))
	for _, want := range []row{
		{"error", "Configuration", "reload failed: agent.yaml:3:1: unknown key (and 1 more … Try: correct /etc/hwsagent/agent.yaml", "since 11:55:00 5 min", "the old one is in force", "the reload at 11:55:00 failed"},
		{"lost", "receiver-01 target", "samples lost: the log, or the target's max_backlog … Try: raise wal.max_bytes", "since 10:00:00 2 h", "412 samples waiting 1\u202f200 lost", "the oldest samples were dropped"},
		{"failing", "probe-0 probe", "no answer within 10s Try: hwsagent check --probe probe-0 runs it once", "since 11:57:57 2 min", "no samples", "failed 9 times in a row"},
		{"0 of 1 up", "node scrape", "http://10.0.0.1:9100/metrics is down: context deadline exceeded Try: look at the target", "since 11:56:00 4 min", "no samples", "all its targets"},
		{"refusing", "otlp receiver", "refuses requests: too large Try: the sender's log has the details", "since 11:59:00 60 s", "14 requests refused", "127.0.0.1:4318"},
	} {
		i := slices.IndexFunc(rows, func(r row) bool { return r.name == want.name })
		if i < 0 {
			t.Errorf("no row %s", want.name)
			continue
		}
		if got := rows[i]; got.state != want.state || !strings.HasPrefix(got.cause, want.cause) || got.since != want.since || got.cost != want.cost || !strings.Contains(got.whole, want.whole) {
			t.Errorf("the row is %+v,\nwant %+v", got, want)
		}
	}
	if len(rows) != 5 || rows[0].name != "Configuration" {
		t.Errorf("%d rows, the first is %q", len(rows), rows[0].name)
	}
	s = fleet(1)
	s.Inputs = []status.InputStatus{{Kind: "probe", Name: "probe-2", MaxSeries: 100, OverSince: s.Now.Add(-3 * time.Minute), Refused: 4321, Example: "x"}}
	s.Duplicates = []status.DuplicateStatus{{Input: "probe probe-0", Other: "probe probe-1", Series: 2, Example: "y", Since: s.Now.Add(-8 * time.Minute)}}
	rows = problemRows(t, render(t, status.Judge(s), nil))
	if len(rows) != 2 || rows[0].since != "since 11:57:00 3 min" || rows[0].cost != "4\u202f321 samples refused" || !strings.HasPrefix(rows[0].cause, "reached its limit of 100 series") || rows[1].since != "since 11:52:00 8 min" {
		t.Errorf("a limit, and series from two inputs: %+v", rows)
	}
	s = fleet(1)
	s.WAL.Error, s.WAL.ErrorSince, s.WAL.Refused = "append to 00000004: write: no space left on device", s.Now.Add(-20*time.Minute), 3822
	s.Probes[0].State, s.Probes[0].Failures, s.Probes[0].LastError, s.Probes[0].Samples, s.Probes[0].Refused = "failing", 9, s.WAL.Error, 0, 2100
	s.WAL.FreeBytes = 0
	body := render(t, status.Judge(s), nil)
	if !strings.Contains(body, `</i>refused</span> <b title="`+s.Probes[0].Name) {
		t.Errorf("the probe is not called refused:\n%s", body)
	}
	for _, want := range []string{"<span>2\u202f100 <small>refused</small></span>", "<small>3\u202f822 samples refused by the log</small>", "<small>cannot be written, 0 B free on disk</small>"} {
		if !strings.Contains(body, want) {
			t.Errorf("a full disk: the page has no %s", want)
		}
	}
	rows = problemRows(t, body)
	if len(rows) != 1 || rows[0].name != "Log" || !strings.HasPrefix(rows[0].cause, "cannot be written: no space left on device Try: make room") ||
		rows[0].since != "since 11:40:00 20 min" || rows[0].cost != "3\u202f822 samples refused not stored; they will not arrive unless their sender repeats them" {
		t.Errorf("a full disk: %+v", rows)
	}
}

// The bar of the targets is green only where data arrives. Beside it stands how long there is room; until that is known, what waits,
// which is not a sum: all targets wait for the same samples.
func TestTargetsOfTheWay(t *testing.T) {
	idle := fleet(3)
	idle.Targets[1] = status.TargetStatus{Name: "new", State: status.StateOK, Ledger: status.LedgerStatus{Balanced: true}}
	one := fleet(3)
	breakTarget(&one.Targets[2], one.Now, status.StateHeld, "401 Unauthorized", 12*time.Minute, 288_000)
	many, _ := plant()
	early := func(s status.Status) status.Status { s.WAL.BytesPerSec = 0; return s } // the rate is not known yet
	for _, c := range []struct {
		name string
		s    status.Status
		want stop
	}{
		{"unknown", idle, stop{Level: status.LevelOK, Figure: "3 targets", Text: "1.2 s behind at most", Well: 2, Unknown: 1}},
		{"one", early(one), stop{Level: status.SeverityError, Figure: "3 targets", Text: "1 with problems, 288\u202f000 waiting", Bad: 1, Well: 2}},
		{"several", early(many), stop{Level: status.SeverityError, Figure: "20 targets", Text: "6 with problems, up to 65\u202f000 waiting each", Bad: 6, Well: 14}},
		{"one, later", one, stop{Level: status.SeverityError, Figure: "3 targets", Text: "1 with problems, room for about 7 weeks", Bad: 1, Well: 2}},
		{"several, later", many, stop{Level: status.SeverityError, Figure: "20 targets", Text: "6 with problems, room for about 7 weeks", Bad: 6, Well: 14}},
	} {
		if diff := cmp.Diff(c.want, newView(status.Judge(c.s), nil).Way.Targets); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// The tab's icon has the colour and shape of the verdict, and comes with the others, for the script.
func TestIcon(t *testing.T) {
	six, _ := plant()
	for _, c := range []struct {
		name string
		s    status.Status
		want markup
	}{{"well", status.Judge(fleet(2)), iconOK}, {"broken", six, iconError}} {
		if body := render(t, c.s, nil); !strings.Contains(body, `<link rel="icon" id="icon" href="`+string(c.want)+`"`) || strings.Count(body, string(iconWarning)) != 1 {
			t.Errorf("%s: the icon is not %s:\n%.1500s", c.name, c.want, body)
		}
	}
	if icon(status.SeverityWarning) != iconWarning {
		t.Error("a warning has another icon")
	}
}

// A page of 50 targets is small, and has the events of the last 24 hours only.
func TestPageOfManyTargets(t *testing.T) {
	s, events := brokenFleet(50)
	body := render(t, s, events)
	total := len(body)
	for _, asset := range []string{"page.css", "page.js"} {
		text, err := assets.ReadFile("assets/" + asset)
		if err != nil {
			t.Fatal(err)
		}
		total += len(text)
	}
	t.Logf("%d bytes", total)
	if total > 100<<10 {
		t.Errorf("the page has %d bytes with its style and script, more than 100 KiB", total)
	}
	if n := strings.Count(body, "<details"); n != 50+6+1 {
		t.Errorf("%d rows", n)
	}
	if strings.Contains(body, " open>") {
		t.Error("a row is open, and takes the room of others")
	}
	if strings.Contains(body, "an event of yesterday") || !strings.Contains(body, "paused by command") {
		t.Error("the events of the last 24 hours are not those on the page")
	}
}

// What several have is said once, with all names: failures that differ by the address only, and losses for one reason.
func TestEqualProblemsAreSaidOnce(t *testing.T) {
	s := fleet(6)
	for i := range 3 {
		why := fmt.Sprintf("dial tcp mimir-%02d.plant.example: connect: connection refused", i)
		breakTarget(&s.Targets[i], s.Now, status.StateRetrying, why, time.Duration(i+5)*time.Minute, 1000)
		s.Targets[i].Try = "start it"
	}
	s.Targets[2].Try = "start the third"
	for i := range 2 {
		s.Probes[i].State, s.Probes[i].Failures, s.Probes[i].LastError = "failing", i+3, s.Probes[i].Target+": timeout"
		s.Losses = append(s.Losses, status.LossStatus{Target: s.Targets[4+i].Name, Reason: "rejected", Samples: 40, FirstAt: s.Now.Add(-time.Hour), LastAt: s.Now.Add(-time.Hour)})
	}
	s = status.Judge(s)
	var got []string
	for _, f := range status.Findings(s) {
		text := f.Severity + " " + f.Kind + " " + strings.Join(f.Names, ",") + ": " + f.Text
		for _, a := range f.Tries {
			text += " | " + a.For + ": " + a.Text
		}
		got = append(got, text)
	}
	want := []string{
		"error targets receiver-00,receiver-01,receiver-02: dial tcp its address: connect: connection refused. Down since 11:53:00 (7 min); nothing is lost; 3\u202f000 samples wait on disk, all targets added up, with room for about 7 weeks at this rate" +
			" | receiver-00, receiver-01: start it | receiver-02: start the third",
		"warning targets receiver-04,receiver-05: 80 samples were refused at 11:00:00: the receiver does not accept them (all targets added up) | : `hwsagent targets rejected NAME` shows them with the receiver's words; `hwsagent events ack` ends this warning",
		"warning probes probe-0,probe-1: fail: its address: timeout | : `hwsagent check --probe NAME` runs it once and says what to do",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(status.Findings(s), s.Findings); diff != "" {
		t.Errorf("JSON has others (-want +got):\n%s", diff)
	}
	var words strings.Builder
	if err := status.WriteText(&words, s); err != nil || strings.Count(words.String(), "connection refused.") != 1 ||
		!strings.Contains(words.String(), "Error targets receiver-00, receiver-01, receiver-02: dial tcp") || !strings.Contains(words.String(), "    Try (receiver-02): start the third\n") {
		t.Errorf("in words (%v):\n%s", err, words.String())
	}
	rows := problemRows(t, render(t, s, nil))
	if len(rows) != 3 {
		t.Fatalf("%d rows: %+v", len(rows), rows)
	}
	for i, want := range []row{
		{"retrying", "receiver-00, receiver-01, receiver-02 3 targets", "dial tcp its address: connect: connection refused Try (receiver-00, receiver-01): start it Try (receiver-02): start the third", "since 11:53:00 7 min", "3\u202f000 samples waiting none lost", ""},
		{"refused", "receiver-04, receiver-05 2 targets", "samples refused: the receiver does not accept them Try: hwsagent targets rejected NAME", "since 11:00:00 60 min", "824 samples waiting 80 refused", ""},
		{"failing", "probe-0, probe-1 2 probes", "address: timeout Try: hwsagent check --probe NAME", "since 11:59:12 48 s", "no samples", ""},
	} {
		if got := rows[i]; got.state != want.state || got.name != want.name || !strings.HasPrefix(got.cause, want.cause) || got.since != want.since || !strings.HasPrefix(got.cost, want.cost) {
			t.Errorf("row %d is %+v,\nwant %+v", i, got, want)
		}
	}
}

// Equal events that follow each other are one line; what stands among the problems is not repeated; old ones are left out.
func TestEventsOfThePage(t *testing.T) {
	s := fleet(3)
	breakTarget(&s.Targets[0], s.Now, status.StateHeld, "401 Unauthorized", time.Minute, 9)
	s = status.Judge(s)
	at := func(d time.Duration) time.Time { return s.Now.Add(-d) }
	events := []status.Event{{Time: at(25 * time.Hour), Kind: "restart", Subject: "agent", Text: "of yesterday"}}
	for i := range maxEvents {
		events = append(events, status.Event{Time: at(time.Duration(20-i) * time.Hour), Kind: "reload", Subject: "config", Text: fmt.Sprintf("loaded %d", i)})
	}
	events = append(events, status.Event{Time: at(9 * time.Minute), Kind: "down", Subject: "target receiver-01", Text: "no such host"}, status.Event{Time: at(9 * time.Minute), Kind: "down", Subject: "target receiver-02", Text: "no such host"},
		status.Event{Time: at(time.Minute), Kind: "held", Subject: "target receiver-00", Text: "401 Unauthorized"})
	v := newEvents(s, events)
	if len(v.Lines) != maxEvents || v.More != 2 {
		t.Fatalf("%d lines and %d more", len(v.Lines), v.More)
	}
	want := []eventLine{
		{At: moment{"11:59:00", "2026-11-20T11:59:00Z"}, Kind: "held", Level: status.SeverityError, Subjects: []string{"target receiver-00"}},
		{At: moment{"11:51:00", "2026-11-20T11:51:00Z"}, Kind: "down", Level: status.SeverityError, Subjects: []string{"target receiver-02", "target receiver-01"}, Text: "no such host"},
	}
	if diff := cmp.Diff(want, v.Lines[:2]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
