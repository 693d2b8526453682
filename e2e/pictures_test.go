package e2e

import (
	"bytes"
	"cmp"
	"encoding/pem"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"hwsagent/e2e/bmcsim"
)

// picture is the page of an agent on a screen of a size.
type picture struct {
	state         string
	width, height int
	dark          bool
	path          string
}

// take writes the picture to a directory.
func (p picture) take(t *testing.T, browser, dir, web string) {
	t.Helper()
	to := &url.URL{Scheme: "http", Host: web}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) },
		ModifyResponse: func(r *http.Response) error { // a frame has the width of a phone, which a browser's window cannot have
			r.Header.Del("X-Frame-Options")
			r.Header.Del("Content-Security-Policy")
			return nil
		},
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/frame":
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprintf(w, `<!DOCTYPE html><style>html, body {margin: 0; overflow: hidden} iframe {display: block; border: 0; height: 150vh; width: %dpx}</style><iframe src="%s"></iframe>`, p.width, p.path)
		case strings.HasSuffix(r.URL.Path, ".js"): // a browser whose time is virtual does not wait for what the agent sends later
			w.Header().Set("Content-Type", "text/javascript")
		default:
			proxy.ServeHTTP(w, r)
		}
	}))
	defer s.Close()
	scheme := map[bool]string{true: "dark", false: "light"}[p.dark]
	file := filepath.Join(dir, fmt.Sprintf("%s-%d-%s.png", p.state, p.width, scheme))
	out, err := exec.CommandContext(t.Context(), browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--user-data-dir="+t.TempDir(), "--hide-scrollbars", "--virtual-time-budget=3000",
		"--blink-settings=preferredColorScheme="+map[bool]string{true: "0", false: "1"}[p.dark], fmt.Sprintf("--window-size=%d,%d", p.width, p.height), "--screenshot="+file, s.URL+"/frame").CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", file, err, out)
	}
	if err := fewerColours(file); err != nil {
		t.Fatal(err)
	}
}

// fewerColours writes a picture anew with the 256 colours that it has most of, which for text is a third of the bytes.
func fewerColours(file string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	all, err := png.Decode(bytes.NewReader(b))
	if err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	count := map[color.RGBA]int{}
	for y := range all.Bounds().Dy() {
		for x := range all.Bounds().Dx() {
			c := color.RGBAModel.Convert(all.At(x, y)).(color.RGBA)
			count[c]++
		}
	}
	colours := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)))
	})
	few := color.Palette{}
	for _, c := range colours[:min(256, len(colours))] {
		few = append(few, c)
	}
	small := image.NewPaletted(all.Bounds(), few)
	draw.Draw(small, small.Bounds(), all, image.Point{}, draw.Src)
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, small); err != nil {
		return err
	}
	return os.WriteFile(file, out.Bytes(), 0o600)
}

// shows waits until the page of an agent has all of these texts.
func (a *agent) shows(path string, want ...string) {
	a.t.Helper()
	eventually(a.t, 2*time.Minute, func() string {
		_, body, err := a.ask(http.MethodGet, path)
		if err != nil {
			return err.Error()
		}
		text := plainHTML(body)
		for _, one := range want {
			if !regexp.MustCompile(one).MatchString(text) {
				return fmt.Sprintf("the page does not show %q:\n%s", one, text)
			}
		}
		return ""
	})
}

// brokenMachine is a server with a failed power supply, and a disk that will fail.
func brokenMachine() *bmcsim.Machine {
	m := bmcsim.NewMachine("watcher", "watch-pass")
	for i := range m.Sensors {
		switch s := &m.Sensors[i]; s.Name {
		case "PS2 Status":
			s.States = 1 | 1<<1 // present, failure detected
		case "Disk4":
			s.States = 1 | 1<<2 // present, predictive failure
		case "CPU1 Temp":
			s.Raw = 81 // of 85
		}
	}
	return m
}

// TestPicturesOfStates makes pictures of the page in the states that a person meets, each from real parts that work or fail, in the directory
// HWSAGENT_PICTURES. Four of them are in docs/img.
func TestPicturesOfStates(t *testing.T) {
	endToEnd(t)
	dir := os.Getenv("HWSAGENT_PICTURES")
	if dir == "" {
		t.Skip("makes pictures for people: set HWSAGENT_PICTURES to a directory")
	}
	browser := needs(t, "chromium")
	probes := "global: {scrape_interval: 1s}\nprobes:\n- {name: hwsagent, type: self, interval: 1s}\n- {name: host, type: host, interval: 1s}\n"
	for i := range 6 {
		probes += fmt.Sprintf("- {name: canary-%d, type: canary, series: 50, interval: 1s, timeout: 1s, noise: true, labels: {line: '%d'}}\n", i+1, i+1)
	}
	well := answers(t, 204, "", "", "")
	targets := func(from, to int) (all string) {
		for i := from; i <= to; i++ {
			all += entry(fmt.Sprintf("mimir-%02d", i), well)
		}
		return all
	}
	for _, c := range []struct {
		name     string
		config   func(t *testing.T) string
		want     []string
		pictures []picture
	}{
		{"ok", func(*testing.T) string { return probes + "remote_write:\n" + targets(1, 3) }, []string{"All data ", `\d{3}/s in`}, []picture{{"ok", 1280, 576, false, "/"}}},
		{"down", func(*testing.T) string {
			return probes + "remote_write:\n" + targets(1, 2) + entry("prometheus-eu", "http://127.0.0.1:1/api/v1/write")
		}, []string{`prometheus-eu target connection refused by 127.0.0.1:1 Try: start the receiver`, `since \S+ [12]\d s`}, []picture{{"down", 1280, 640, false, "/"}, {"down", 390, 844, true, "/"}}},
		{"plant", func(t *testing.T) string {
			files, err := os.MkdirTemp("", "plant") // short: the page shows it
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(files) })
			expired, authority := certified(t, time.Now().Add(-24*time.Hour))
			ca := writeFile(t, files+"/ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority})))
			token := writeFile(t, files+"/token", "x")
			return probes + "remote_write:\n" + targets(1, 14) + entry("prometheus-eu", "http://127.0.0.1:1/api/v1/write") + entry("mimir-eu", answers(t, 401, "", "", "the token is not known"), "    bearer_token_file: "+token+"\n") +
				entry("thanos", answers(t, 404, "", "", "404 page not found")) + entry("cortex", answers(t, 413, "", "", "")) +
				entry("plant", expired, "    tls_config: {ca_file: "+ca+"}\n") + entry("lab", "http://no-such-host.invalid/api/v1/write")
		}, []string{"Data arrives at 14 of 20 targets", "connection refused", "401 Unauthorized", "404 Not Found", "413 Request", "has expired", "no such host", `since \S+ 9\d s`}, []picture{{"plant", 1280, 900, false, "/"}, {"plant", 390, 1688, true, "/"}}},
		{"clock", func(t *testing.T) string {
			return probes + "remote_write:\n" + targets(1, 2) + entry("slow-clock", answers(t, 400, "Date", time.Now().Add(-2*time.Hour).UTC().Format(http.TimeFormat), "out of bounds: timestamp is too far in the future"))
		}, []string{"clock is 2 ?h"}, []picture{{"clock", 1280, 640, false, "/"}}},
		{"parts", func(t *testing.T) string {
			b, err := bmcsim.Listen("127.0.0.1:0", brokenMachine(), bmcsim.Well)
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			go func() { defer close(ended); b.Run() }()
			t.Cleanup(func() { b.Close(); <-ended })
			return probes + fmt.Sprintf("- {name: bmc, type: ipmi, target: %q, username: watcher, password: watch-pass, interval: 5s, timeout: 5s, labels: {instance: node-17.plant}}\n", b.Address()) + "remote_write:\n" + targets(1, 2)
		}, []string{"1 failed", "1 predicted failure"}, []picture{{"parts", 1280, 736, false, "/"}, {"parts", 390, 1688, true, "/"}, {"device", 1280, 900, false, "/device?name="}, {"device", 390, 1688, true, "/device?name="}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := startAgent(t, c.config(t))
			a.shows("/", c.want...)
			for _, p := range c.pictures {
				if strings.HasSuffix(p.path, "name=") {
					_, body, err := a.ask(http.MethodGet, "/")
					m := regexp.MustCompile(`/device\?name=[^"]+`).FindString(body) // the worst
					if err != nil || m == "" {
						t.Fatal("the page leads to no device", err)
					}
					p.path = m
				}
				p.take(t, browser, dir, a.web)
			}
		})
	}
	t.Run("full", func(t *testing.T) {
		a, inside := onSmallDisk(t, 64<<20, "global: {scrape_interval: 1s}\nwal: {max_bytes: 1GiB, min_free_bytes: 0B, warn_full_within: 0s}\nprobes: [{type: canary, series: 20000, interval: 200ms, timeout: 200ms, noise: true}]\nremote_write:\n"+entry("mimir-01", well))
		fill := fmt.Sprintf(`room=$(stat -f -c '%%a * %%S' %[1]s); head -c $(($room)) /dev/zero >>%[1]s/ballast`, a.storage)
		eventually(t, time.Minute, func() string {
			inside(fill) // also what the agent gave back
			if _, body, err := a.ask(http.MethodGet, "/"); err != nil || !strings.Contains(plainHTML(body), "cannot be written") {
				return fmt.Sprint("the disk is not full: ", err)
			}
			return ""
		})
		picture{"full", 1280, 640, true, "/"}.take(t, browser, dir, a.web)
	})
}
