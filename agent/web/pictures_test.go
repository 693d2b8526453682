package web

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"hwsagent/agent/hardware/inventory"
	"hwsagent/agent/status"
)

var picturesDir = flag.String("pictures", "", "write pictures of the page for the documentation to this directory")

// pictured is a picture of the page in a state.
type pictured struct {
	state         string
	width, height int
	scheme        string // light or dark
}

func (p pictured) name() string { return fmt.Sprintf("%s-%d-%s.png", p.state, p.width, p.scheme) }

// pictures are of each state that a person meets, on a screen and on a phone, light and dark.
var pictures = []pictured{
	{"ok", 1280, 520, "light"},
	{"held", 1280, 780, "light"},
	{"full", 1280, 640, "dark"},
	{"clock", 1280, 640, "light"},
	{"plant", 1280, 900, "light"},
	{"plant", 390, 1688, "dark"},
	{"parts", 1280, 720, "light"},
	{"parts", 390, 1200, "dark"},
	{"device", 1280, 640, "light"},
	{"device", 390, 1200, "dark"},
	{"search", 1280, 640, "light"},
	{"search", 390, 1200, "dark"},
}

// framed is a page that has the agent's page in a frame: a browser's window cannot be as narrow as a phone.
const framed = `<!DOCTYPE html><style>html, body {margin: 0; overflow: hidden} iframe {display: block; border: 0; height: 120vh}</style>
<iframe src="/state/%s/" style="width: %dpx"></iframe>`

// TestPictures writes the pictures, if -pictures says where. They are looked at by people.
func TestPictures(t *testing.T) {
	if *picturesDir == "" {
		t.Skip("writes pictures for the documentation: run by hand, see internal/tools/README.md")
	}
	browser := chromium(t)
	srv := httptest.NewServer(picturePages(t))
	defer srv.Close()
	dir, err := filepath.Abs(*picturesDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pictures {
		scheme := map[string]string{"light": "1", "dark": "0"}[p.scheme]
		out, err := exec.CommandContext(t.Context(), browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--user-data-dir="+t.TempDir(),
			"--hide-scrollbars", "--virtual-time-budget=3000", "--blink-settings=preferredColorScheme="+scheme, fmt.Sprintf("--window-size=%d,%d", p.width, p.height),
			"--screenshot="+filepath.Join(dir, p.name()), fmt.Sprintf("%s/frame/%s/%d", srv.URL, p.state, p.width)).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", p.name(), err, out)
		}
		if err := fewerColours(filepath.Join(dir, p.name())); err != nil {
			t.Fatal(err)
		}
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

// picturePages returns the pages of all states, with plots, and without the program that keeps them current.
func picturePages(t *testing.T) http.Handler {
	t.Helper()
	wave := func(i int) float64 { return 900 + 300*float64(i%97)/97 }
	history := func(string) []Figures {
		all := day(time.Now(), 1440, wave)
		for i := range all {
			all[i].Lag, all[i].Backlog = 2+wave(i)/600, 9*wave(i)
		}
		return all
	}
	// of a target that takes nothing since so many minutes
	stuck := func(minutes int) []Figures {
		all := history("")
		for i := max(0, len(all)-minutes); i < len(all); i++ {
			n := float64(i - len(all) + minutes)
			all[i].Lag, all[i].Backlog, all[i].Out = 60*n, 40_000*n, 0
		}
		return all
	}
	pages := map[string]http.Handler{}
	for _, name := range []string{"ok", "held", "full", "clock"} {
		s := load(t, name)
		pages[name] = pageOf(Options{Status: func() status.Status { return s }, History: history})
	}
	well := status.Judge(fleet(3))
	pages["parts"] = pageOf(Options{Status: func() status.Status { return well }, History: history, Hardware: func() []status.Component { return site(12, well.Now) }})
	pages["device"] = at("/device?name=node-01", pageOf(Options{Status: func() status.Status { return well }, Device: func(string) inventory.Inventory { return machine(well.Now, 6) }}))
	six, since := plant()
	pages["search"] = at("/search?q=0", pageOf(Options{Status: func() status.Status { return six }, Hardware: func() []status.Component { return site(2, well.Now) }}))
	pages["plant"] = pageOf(Options{Status: func() status.Status { return six }, Events: func() []status.Event { return since }, History: func(target string) []Figures {
		for _, t := range six.Targets {
			if t.Name == target && t.State != status.StateOK {
				return stuck(int(six.Now.Sub(t.LastSuccess).Minutes()))
			}
		}
		return history(target)
	}})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		parts := strings.SplitN(strings.TrimPrefix(r.URL.Path, "/"), "/", 3)
		switch {
		case parts[0] == "frame":
			width, err := strconv.Atoi(parts[2])
			if err != nil {
				t.Errorf("%s: %v", r.URL.Path, err)
			}
			http.SetCookie(w, &http.Cookie{Name: "state", Value: parts[1], Path: "/"})
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprintf(w, framed, parts[1], width)
		case strings.HasSuffix(r.URL.Path, ".js"):
			w.Header().Set("Content-Type", "text/javascript")
		case parts[0] == "state" && pages[parts[1]] != nil:
			r.URL.Path = "/" + parts[2]
			pages[parts[1]].ServeHTTP(unframed{w}, r)
		default: // styles and plots, by their place below the root
			state, err := r.Cookie("state")
			if err != nil || pages[state.Value] == nil {
				http.NotFound(w, r)
				return
			}
			pages[state.Value].ServeHTTP(unframed{w}, r)
		}
	})
}
