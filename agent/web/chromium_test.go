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
      " right " + Math.ceil(worst) + " height " + d.documentElement.scrollHeight + " open " + d.querySelectorAll("details[open]").length + " cut " + cut + ";";
    document.body.append(p);
  };
  document.body.append(f);
});
</script></body>`

// measured are the figures of one width.
var measured = regexp.MustCompile(`width (\d+) inside (\d+) content (\d+) right (\d+) height (\d+) open (\d+) cut (\d+);`)

// A browser shows 50 targets of which 3 are broken on two screens of 1280 by 900, and nothing is wider than a screen
// of 1280, or a phone's of 390.
func TestPageFitsChromium(t *testing.T) {
	browser := chromium(t)
	s, events := brokenFleet(50)
	s.Targets[30].PendingSamples, s.Targets[30].Name = 1_234_567_890, "a-receiver-with-a-name-that-is-longer-than-its-column-and-than-a-phone-is-wide"
	s.Losses = []status.LossStatus{{Target: s.Targets[31].Name, Reason: "budget", Samples: 123_456_789, LastAt: s.Now.Add(-time.Hour), Acknowledged: true}}
	s.Scrape = []status.ScrapeStatus{{Job: "kafka", Targets: []status.ScrapeTargetStatus{{URL: "http://127.0.0.1:9308/metrics", Health: status.HealthUp, Interval: "15s", LastScrape: s.Now}}}}
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
	all := measured.FindAllStringSubmatch(string(out), -1)
	if len(all) != 2 {
		t.Fatalf("the browser measured nothing:\n%s", out)
	}
	for _, m := range all {
		var n [8]int
		for i := range m[1:] {
			if n[i+1], err = strconv.Atoi(m[i+1]); err != nil {
				t.Fatal(err)
			}
		}
		width, inside, content, right, height, open, cut := n[1], n[2], n[3], n[4], n[5], n[6], n[7]
		t.Logf("%d wide: %d high", width, height)
		if content > inside || right > inside {
			t.Errorf("%d wide: the page is %d wide and something ends at %d, beyond the screen's %d", width, content, right, inside)
		}
		if cut > 0 {
			t.Errorf("%d wide: %d figures are cut off", width, cut)
		}
		if open != 3 {
			t.Errorf("%d wide: %d rows are open", width, open)
		}
		if width == 1280 && height > 2*900 {
			t.Errorf("%d wide: %d high, more than two screens of 900", width, height)
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

// TestSelectedTextChromium: a page that keeps old figures because text is selected says so, and no longer than that.
func TestSelectedTextChromium(t *testing.T) {
	browser := chromium(t)
	s := status.Judge(fleet(3))
	h := pageOf(Options{Status: func() status.Status { return s }})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/selected":
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprint(w, selected)
		case "/api/v1/stream": // the page asks by itself: a browser whose time is virtual does not wait for a stream
			http.NotFound(w, r)
		default:
			h.ServeHTTP(unframed{w}, r)
		}
	}))
	defer srv.Close()
	out, err := exec.CommandContext(t.Context(), browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--user-data-dir="+t.TempDir(),
		"--virtual-time-budget=30000", "--dump-dom", srv.URL+"/selected").Output()
	if err != nil {
		t.Fatalf("run %s: %v", browser, err)
	}
	if want := `while selected: "Not refreshed while text is selected"; afterwards: none;`; !strings.Contains(string(out), want) {
		t.Errorf("the page does not say %q:\n%s", want, out)
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
