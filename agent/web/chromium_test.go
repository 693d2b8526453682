package web

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"hwsagent/agent/status"
)

// chromium returns a browser without a screen; a test without one is skipped, and fails where CI runs it.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("there is no chromium on this machine, and CI must not leave this out")
	}
	t.Skip("there is no chromium on this machine")
	return ""
}

// measure shows a page in frames of both widths and writes down how large it is there.
const measure = `<!DOCTYPE html><body><script>
function ends(d, rows) {
  var low = 0;
  d.querySelectorAll(rows).forEach(function (e) { low = Math.max(low, e.getBoundingClientRect().bottom); });
  return Math.ceil(low);
}
[1280, 390].forEach(function (width) {
  var f = document.createElement("iframe");
  f.style.width = width + "px"; f.style.height = "900px"; f.style.border = "0"; f.src = "/?" + width;
  f.onload = function () {
    var d = f.contentDocument, worst = 0;
    d.querySelectorAll("main *").forEach(function (e) { worst = Math.max(worst, e.getBoundingClientRect().right); });
    var p = document.createElement("p");
    var cut = 0;
    d.querySelectorAll("summary span").forEach(function (e) { if (e.scrollWidth > e.clientWidth && e.clientWidth > 0) { cut++; } });
    p.textContent = "width " + width + " inside " + d.documentElement.clientWidth + " content " + d.documentElement.scrollWidth +
      " right " + Math.ceil(worst) + " height " + d.documentElement.scrollHeight + " broken " + ends(d, ".things details") + " rows " + ends(d, "details:not(:has(> #k-wal))") + " cut " + cut +
      " short " + Array.from(d.querySelectorAll(".try")).filter(function (e) { return e.clientHeight > 0 && e.scrollHeight > e.clientHeight; }).length + ";";
    document.body.append(p);
  };
  document.body.append(f);
});
</script></body>`

// measured are the figures of one width: broken and rows are where the last row with problems ends, and the last
// of all things but the log.
var measured = regexp.MustCompile(`width (\d+) inside (\d+) content (\d+) right (\d+) height (\d+) broken (\d+) rows (\d+) cut (\d+) short (\d+);`)

// size is what a browser measures of a page on a screen of a width.
type size struct{ width, inside, content, right, height, broken, rows, cut, short int }

// sizes returns what a browser measures of a status on both screens.
func sizes(t *testing.T, s status.Status, events []status.Event) (all []size) {
	t.Helper()
	browser := chromium(t)
	h := pageOf(Options{Status: func() status.Status { return s }, Events: func() []status.Event { return events }, History: func(string) []Figures {
		return day(time.Now(), 1440, func(i int) float64 { return float64(i % 100) })
	}})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/measure" {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprint(w, measure)
			return
		}
		h.ServeHTTP(unframed{w}, r)
	}))
	defer srv.Close()
	out, err := exec.CommandContext(t.Context(), browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--user-data-dir="+t.TempDir(),
		"--virtual-time-budget=5000", "--dump-dom", srv.URL+"/measure").Output()
	if err != nil {
		t.Fatalf("run %s: %v", browser, err)
	}
	for _, m := range measured.FindAllStringSubmatch(string(out), -1) {
		var n [9]int
		for i := range n {
			if n[i], err = strconv.Atoi(m[i+1]); err != nil {
				t.Fatal(err)
			}
		}
		all = append(all, size{n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8]})
	}
	if len(all) != 2 {
		t.Fatalf("the browser measured nothing:\n%s", out)
	}
	for _, one := range all {
		t.Logf("%+v", one)
		if one.content > one.inside || one.right > one.inside {
			t.Errorf("%d wide: the page is %d wide and something ends at %d, beyond the screen's %d", one.width, one.content, one.right, one.inside)
		}
		if one.cut > 0 {
			t.Errorf("%d wide: %d figures are cut off", one.width, one.cut)
		}
	}
	return all
}

// A browser shows 50 targets of which 3 are broken on two screens of 1280 by 900, and nothing is wider than a screen
// of 1280, or a phone's of 390.
func TestPageFitsChromium(t *testing.T) {
	s, events := brokenFleet(50)
	s.Targets[30].PendingSamples, s.Targets[30].Name = 1_234_567_890, "a-receiver-with-a-name-that-is-longer-than-its-column-and-than-a-phone-is-wide"
	s.Losses = []status.LossStatus{{Target: s.Targets[31].Name, Reason: "budget", Samples: 123_456_789, LastAt: s.Now.Add(-time.Hour), Acknowledged: true}}
	s.Scrape = []status.ScrapeStatus{{Job: "kafka", Targets: []status.ScrapeTargetStatus{{URL: "http://127.0.0.1:9308/metrics", Health: status.HealthUp, Interval: "15s", LastScrape: s.Now}}}}
	for _, one := range sizes(t, s, events) {
		if one.width == 1280 && one.height > 2*900 {
			t.Errorf("%d wide: %d high, more than two screens of 900", one.width, one.height)
		}
	}
}

// The verdict, and all rows of 20 targets of which 6 are broken and of 8 probes, fit a screen of 1280 by 900; on a phone of 390 by 844
// the verdict and the 6 broken ones fit two screens, with all lines of their remedies.
func TestPlantFitsChromium(t *testing.T) {
	s, events := plant()
	for _, one := range sizes(t, s, events) {
		switch {
		case one.width == 1280 && (one.rows > 900 || one.broken == 0):
			t.Errorf("%d wide: the last row ends at %d, beyond the screen", one.width, one.rows)
		case one.width == 390 && (one.broken > 2*844 || one.broken == 0):
			t.Errorf("%d wide: the last broken row ends at %d, beyond two screens", one.width, one.broken)
		case one.width == 390 && one.short > 0:
			t.Errorf("%d wide: %d remedies are cut off", one.width, one.short)
		}
	}
}

// selected shows a page in a frame, selects its first line, and writes down what the page says when there was something new.
const selected = `<!DOCTYPE html><body><script>
var f = document.createElement("iframe");
f.src = "/";
f.onload = function () {
  var d = f.contentDocument, p = document.createElement("p"), s = f.contentWindow.getSelection();
  s.selectAllChildren(d.querySelector(".who"));
  setTimeout(function () {
    var main = d.getElementById("main");
    p.textContent = "while selected: " + f.contentWindow.getComputedStyle(main, "::before").content + ";";
    s.removeAllRanges();
  }, 10000);
  setTimeout(function () {
    var main = d.getElementById("main");
    p.textContent += " afterwards: " + f.contentWindow.getComputedStyle(main, "::before").content + ";";
    document.body.append(p);
  }, 20000);
};
document.body.append(f);
</script></body>`

// inFrame shows a page that has the agent's in a frame, and returns what it has become.
func inFrame(t *testing.T, around string) string {
	t.Helper()
	browser := chromium(t)
	s := status.Judge(fleet(3))
	h := pageOf(Options{Status: func() status.Status { return s }})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/around":
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprint(w, around)
		case "/api/v1/stream": // the page asks by itself: a browser whose time is virtual does not wait for a stream
			http.NotFound(w, r)
		default:
			h.ServeHTTP(unframed{w}, r)
		}
	}))
	defer srv.Close()
	out, err := exec.CommandContext(t.Context(), browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--user-data-dir="+t.TempDir(),
		"--virtual-time-budget=30000", "--dump-dom", srv.URL+"/around").Output()
	if err != nil {
		t.Fatalf("run %s: %v", browser, err)
	}
	return string(out)
}

// TestSelectedTextChromium: a page that keeps old figures because text is selected says so, and no longer than that.
func TestSelectedTextChromium(t *testing.T) {
	if out, want := inFrame(t, selected), `while selected: "Not refreshed while text is selected"; afterwards: none;`; !strings.Contains(out, want) {
		t.Errorf("the page does not say %q:\n%s", want, out)
	}
}

// opened shows a page in a frame, opens and focuses its first row without a click, and writes down whether the row
// that replaces it is open and focused.
const opened = `<!DOCTYPE html><body><script>
var f = document.createElement("iframe");
f.src = "/";
f.onload = function () {
  var d = f.contentDocument, p = document.createElement("p"), first = d.querySelector("details");
  first.open = true;
  first.firstElementChild.focus();
  setTimeout(function () {
    var now = d.querySelector("details");
    p.textContent = "replaced: " + (now !== first) + ", open: " + now.open + ", all: " + d.querySelectorAll("details[open]").length + ", focused: " + (d.activeElement === now.firstElementChild) + ";";
    document.body.append(p);
  }, 10000);
};
document.body.append(f);
</script></body>`

// TestOpenedRowsStayChromium: a row that the keyboard or a search in the browser opened is open, and keeps the focus,
// after the page has changed.
func TestOpenedRowsStayChromium(t *testing.T) {
	if out, want := inFrame(t, opened), "replaced: true, open: true, all: 1, focused: true;"; !strings.Contains(out, want) {
		t.Errorf("the page does not say %q:\n%s", want, out)
	}
}

// TestTimesAreLocalChromium: a reader in another zone reads the times of the rows in that zone, with the host's as titles, also in
// sentences; the page says so. In the host's zone the page stays as it is.
func TestTimesAreLocalChromium(t *testing.T) {
	browser := chromium(t)
	s, events := plant()
	h := pageOf(Options{Status: func() status.Status { return s }, Events: func() []status.Event { return events }})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/api/") { // the page asks by itself, as often as it likes
			http.NotFound(w, r)
			return
		}
		h.ServeHTTP(w, r)
	}))
	defer srv.Close()
	for zone, want := range map[string][]string{
		"Asia/Tokyo": {`title="2026-11-20 12:00:00 UTC">11/20/2026, 21:00:00 GMT+9</time>, your time`, `title="11:53:00 UTC">20:53:00</time> <small>7 min</small>`, `Down since <time datetime="2026-11-20T11:53:00Z" title="11:53:00 UTC">20:53:00</time> (7 min)`},
		"UTC":        {`<time datetime="2026-11-20T12:00:00Z">2026-11-20 12:00:00 UTC</time></p>`, `<time datetime="2026-11-20T11:53:00Z">11:53:00</time>`},
	} {
		cmd := exec.CommandContext(t.Context(), browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--user-data-dir="+t.TempDir(), "--virtual-time-budget=1000", "--lang=en-US", "--dump-dom", srv.URL)
		cmd.Env = append(os.Environ(), "TZ="+zone, "LANGUAGE=en_US")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("run %s: %v", browser, err)
		}
		for _, one := range want {
			if !strings.Contains(string(out), one) {
				t.Errorf("in %s the page does not say %q:\n%.4000s", zone, one, out)
			}
		}
	}
}

// unframed leaves out the headers that forbid frames.
type unframed struct{ http.ResponseWriter }

func (u unframed) WriteHeader(code int) {
	u.Header().Del("X-Frame-Options")
	u.Header().Del("Content-Security-Policy")
	u.ResponseWriter.WriteHeader(code)
}

func (u unframed) Write(p []byte) (int, error) {
	u.Header().Del("X-Frame-Options")
	u.Header().Del("Content-Security-Policy")
	return u.ResponseWriter.Write(p)
}
