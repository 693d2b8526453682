package web

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"hwsagent/agent/hardware/inventory"
	"hwsagent/agent/status"
)

// The rules of axe-core, as npm has them: the version, and the SHA-512 of its archive.
const (
	axePackage = "axe-core@4.10.3"
	axeSum     = "5e6edba515e70d25f6604d9815f064d859c5d1ea7ab661bbc4f87c88779ef0c21cae0abbeb636471ef39e9d62d2582e4b88a1866f19f4ecfcf6d986275e4dc12"
)

// axeScript returns the program of axe-core. A test without npm, or without what npm gets it from, is skipped, and fails
// where CI runs it.
func axeScript(t *testing.T) []byte {
	t.Helper()
	leave := func(why string, err error) {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s, and CI must not leave this out: %v", why, err)
		}
		t.Skip(why)
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		leave("there is no npm on this machine", err)
	}
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), npm, "pack", "--silent", axePackage)
	cmd.Dir = dir
	if err := cmd.Run(); err != nil {
		leave("npm cannot get "+axePackage, err)
	}
	found, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err != nil || len(found) != 1 {
		t.Fatalf("npm pack made %v, %v", found, err)
	}
	archive, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	if sum := sha512.Sum512(archive); hex.EncodeToString(sum[:]) != axeSum {
		t.Fatalf("%s is another than the one that was looked at: %x", axePackage, sum)
	}
	packed, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	for files := tar.NewReader(packed); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			t.Fatal("there is no axe.min.js in it")
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Name == "package/axe.min.js" {
			text, err := io.ReadAll(files)
			if err != nil {
				t.Fatal(err)
			}
			return text
		}
	}
}

// at serves one address of a handler as its first page.
func at(address string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			r = httptest.NewRequestWithContext(r.Context(), http.MethodGet, "http://localhost"+address, nil)
		}
		h.ServeHTTP(w, r)
	})
}

// axePage shows pages one after the other in frames of both widths, has axe look at each, and writes down what it found.
const axePage = `<!DOCTYPE html><html lang="en"><head><title>axe</title></head><body><p id="said"></p><script>
(async function () {
  var said = document.getElementById("said"), out = "";
  for (var state of [STATES]) for (var width of [1280, 390]) {
    document.cookie = "state=" + state + "; path=/";
    var f = document.createElement("iframe");
    f.title = "page"; f.style.width = width + "px"; f.style.height = "900px"; f.src = "/state/" + state + "/";
    var loaded = new Promise(function (done) { f.onload = done; });
    document.body.append(f);
    await loaded;
    var s = f.contentDocument.createElement("script");
    s.src = "/axe.js";
    loaded = new Promise(function (done) { s.onload = done; });
    f.contentDocument.head.append(s);
    await loaded;
    for (var i = 0; state === "gone" && i < 600 && !f.contentDocument.querySelector(".stale"); i++) {
      await new Promise(function (done) { setTimeout(done, 100); });
    }
    if (state === "gone" && !f.contentDocument.querySelector(".stale")) { out += "[never gone]"; }
    var r = await f.contentWindow.axe.run(f.contentDocument, {resultTypes: ["violations"]});
    out += "[" + state + " " + width + " SCHEME: " + r.passes.length + " rules pass" +
      r.violations.map(function (v) { return "; VIOLATION " + v.id + " (" + v.impact + "): " + v.nodes.slice(0, 3).map(function (n) { return n.target.join(" ") + " " + n.html.slice(0, 160); }).join(" | "); }).join("") + "]";
    f.remove();
  }
  said.textContent = out + "[end]";
})();
</script></body></html>`

// Axe finds nothing on the page in any of the statuses, in both widths, light and dark.
func TestAxe(t *testing.T) {
	if testing.Short() {
		t.Skip("left out with -short: the other tests of Chromium load the same pages")
	}
	browser, axe := chromium(t), axeScript(t)
	h := map[string]http.Handler{}
	for _, name := range statuses {
		s := load(t, name)
		h[name] = pageOf(Options{Status: func() status.Status { return s }})
	}
	many, events := brokenFleet(50)
	h["fleet"] = pageOf(Options{Status: func() status.Status { return many }, Events: func() []status.Event { return events }})
	six, since := plant()
	h["plant"] = pageOf(Options{Status: func() status.Status { return six }, Events: func() []status.Event { return since }, History: func(string) []Figures { return nil }})
	well := status.Judge(fleet(3))
	h["parts"] = pageOf(Options{Status: func() status.Status { return well }, Hardware: func() []status.Component { return site(12, well.Now) }})
	h["device"] = at("/device?name=node-01", pageOf(Options{Status: func() status.Status { return well }, Device: func(string) inventory.Inventory { return machine(well.Now, 12) }}))
	h["search"] = at("/search?q=node-01", pageOf(Options{Status: func() status.Status { return well }, Hardware: func() []status.Component { return site(12, well.Now) }}))
	h["gone"] = h["ok"] // and after that nothing is answered
	quoted := ""
	for name := range h {
		quoted += fmt.Sprintf("%q,", name)
	}
	for scheme, flag := range map[string]string{"light": "--blink-settings=preferredColorScheme=1", "dark": "--blink-settings=preferredColorScheme=0"} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/state/"), "/"); {
			case r.URL.Path == "/axe":
				w.Header().Set("Content-Type", "text/html; charset=utf-8")
				fmt.Fprint(w, strings.NewReplacer("STATES", quoted, "SCHEME", scheme).Replace(axePage))
			case r.URL.Path == "/axe.js":
				w.Header().Set("Content-Type", "text/javascript")
				_, _ = w.Write(axe)
			case strings.HasPrefix(r.URL.Path, "/api/"):
				w.WriteHeader(http.StatusServiceUnavailable)
			case strings.HasSuffix(r.URL.Path, ".js") && !strings.Contains(r.Header.Get("Cookie"), "state=gone"): // the pages do not change
				w.Header().Set("Content-Type", "text/javascript")
			case h[name] != nil && r.Header.Get("Sec-Fetch-Dest") == "empty":
				w.WriteHeader(http.StatusServiceUnavailable)
			case h[name] != nil:
				http.StripPrefix("/state/"+name, h[name]).ServeHTTP(unframed{w}, r)
			default:
				h["ok"].ServeHTTP(unframed{w}, r)
			}
		}))
		out, err := exec.CommandContext(t.Context(), browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--user-data-dir="+t.TempDir(),
			"--window-size=1400,1000", flag, "--virtual-time-budget=120000", "--dump-dom", srv.URL+"/axe").Output()
		srv.Close()
		if err != nil {
			t.Fatalf("run %s: %v", browser, err)
		}
		all := regexp.MustCompile(`\[([a-z]+ \d+ `+scheme+`: (\d+) rules pass[^\]]*)\]`).FindAllStringSubmatch(string(out), -1)
		if len(all) != 2*len(h) || !strings.Contains(string(out), "[end]") {
			t.Fatalf("axe has looked at %d pages, not %d:\n%.3000s", len(all), 2*len(h), out)
		}
		for _, m := range all {
			if strings.Contains(m[1], "VIOLATION") || m[2] == "0" {
				t.Error(m[1])
			}
		}
	}
}
