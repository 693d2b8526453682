package devices

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// noSpace returns how the tests judge a target.
func noSpace(target string) error {
	if strings.Contains(target, " ") || target == "" {
		return errors.New("has a space")
	}
	return nil
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// read returns what a list of that pattern reads, as text.
func read(f *Files, pattern string) (devices, problems string) {
	l := List{FileSD: []FileSD{{Files: []string{pattern}}}}
	all, wrong := l.Devices(f, noSpace)
	var names []string
	for _, d := range all {
		names = append(names, d.Target+d.Labels["site"])
	}
	for _, p := range wrong {
		problems += p.Text + "\n"
	}
	return strings.Join(names, " "), problems
}

// A file is read again when it changes. While it is broken, in whichever way, its last good
// devices stay, and the problem says so.
func TestFileThatBreaks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "devices.yml")
	var f Files
	before := f.Changes([]string{path})
	step := func(what, devices, problem string) {
		t.Helper()
		now := f.Changes([]string{path})
		if now == before {
			t.Errorf("%s: no change is seen", what)
		}
		before = now
		got, wrong := read(&f, path)
		if got != devices || !strings.Contains(wrong, problem) || (problem == "") != (wrong == "") {
			t.Errorf("%s: %q %q, want %q %q", what, got, wrong, devices, problem)
		}
		if f.Changes([]string{path}) != before {
			t.Errorf("%s: a change is seen where nothing changes", what)
		}
	}
	write(t, path, "")
	step("an empty file", "", "the file is empty")
	write(t, path, "- targets: [a, b]\n  labels: {site: 1}\n- {targets: [c]}\n")
	step("a good file", "a1 b1 c", "")
	for what, text := range map[string]string{
		"half a file":          "- targets: [a, b\n",
		"an empty file":        "\n",
		"a mapping":            "targets: [a]\n",
		"an unknown key":       "- {targets: [a], lables: {a: b}}\n",
		"a wrong label":        "- {targets: [a], labels: {'a b': c}}\n",
		"the name of a metric": "- {targets: [a], labels: {__name__: c}}\n",
		"null":                 "null\n",
		"too much":             "# " + strings.Repeat("x", maxFile),
	} {
		write(t, path, text)
		step(what, "a1 b1 c", "; the 3 targets that it had before stay")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	step("no file", "a1 b1 c", "does not exist; the 3 targets that it had before stay")
	write(t, path, `[{"targets": ["d"], "labels": {"site": "2"}}]`)
	step("JSON", "d2", "")
	write(t, path, "[{targets: [d, e f, d, g]}]")
	step("targets that are none", "d g", `2 of its targets left out, the first: target "e f": has a space`)
	write(t, path, "[]")
	step("an empty list", "", "")
}

// The files of a pattern come and go with their devices.
func TestFilesOfAPattern(t *testing.T) {
	dir := t.TempDir()
	pattern := filepath.Join(dir, "*.yml")
	var f Files
	if got, wrong := read(&f, pattern); got != "" || !strings.Contains(wrong, "no file matches") {
		t.Errorf("%q %q", got, wrong)
	}
	write(t, filepath.Join(dir, "a.yml"), "[{targets: [a]}]")
	write(t, filepath.Join(dir, "b.yml"), "[{targets: [b, a]}]")
	if got, _ := read(&f, pattern); got != "a b" {
		t.Errorf("%q", got)
	}
	before := f.Changes([]string{pattern})
	if err := os.Remove(filepath.Join(dir, "a.yml")); err != nil {
		t.Fatal(err)
	}
	if f.Changes([]string{pattern}) == before {
		t.Error("no change is seen")
	}
	if got, wrong := read(&f, pattern); got != "b a" || wrong != "" {
		t.Errorf("%q %q", got, wrong)
	}
}

// A pipe in the place of a file does not hold the reader up.
func TestNoFile(t *testing.T) {
	dir := t.TempDir()
	if _, wrong := read(new(Files), dir); !strings.Contains(wrong, "not a regular file") {
		t.Errorf("%q", wrong)
	}
}

func TestWrongLists(t *testing.T) {
	for _, tc := range []struct {
		l    List
		want string
	}{
		{List{}, ""},
		{List{Targets: []string{"a"}}, ""},
		{List{FileSD: []FileSD{{Files: []string{"x"}}}, Shard: &Shard{2, 3}}, ""},
		{List{Targets: []string{}}, "targets: the list names no target"},
		{List{FileSD: []FileSD{{}}}, "file_sd_configs: the list names no target"},
		{List{Targets: []string{"a", "b c"}}, "targets[1]: has a space"},
		{List{Targets: []string{"a"}, StaticConfigs: []Group{{Targets: []string{"a"}}}}, `static_configs[0].targets[0]: the target "a" is listed twice`},
		{List{Targets: slices.Repeat([]string{"a"}, 1), StaticConfigs: []Group{{Targets: []string{"b"}, Labels: map[string]string{"a b": ""}}}}, `static_configs[0].labels.a b: "a b" is not a label name`},
		{List{FileSD: []FileSD{{Files: []string{"[a"}}}}, "file_sd_configs[0].files[0]: is not a path"},
		{List{Targets: []string{"a"}, Shard: &Shard{3, 3}}, "shard: index 3 of total 3 is not a share"},
		{List{Targets: []string{"a"}, Shard: &Shard{0, 0}}, "shard: index 0 of total 0"},
		{List{Shard: &Shard{0, 1}}, "shard: there is no list"},
		{List{MaxRequests: -1}, "max_requests_per_second: -1 is not between"},
		{List{MaxRequestsPerDevice: 1e7}, "max_requests_per_second_per_device: 1e+07 is not between"},
	} {
		err := tc.l.Validate(noSpace)
		if got := fmt.Sprint(err); tc.want == "" && err != nil || !strings.Contains(got, tc.want) {
			t.Errorf("%+v: %v, want %q", tc.l, err, tc.want)
		}
	}
	var many List
	for i := range MaxListed + 2 {
		many.Targets = append(many.Targets, fmt.Sprint(i))
	}
	if err := many.Validate(noSpace); err == nil || strings.Count(err.Error(), "more than") != 1 {
		t.Errorf("%v", err)
	}
}

// Each device belongs to exactly one share, the shares are about equal, and where a device belongs
// does not depend on the others.
func TestShards(t *testing.T) {
	var l List
	for i := range 3000 {
		l.Targets = append(l.Targets, fmt.Sprintf("10.0.%d.%d", i/250, i%250))
	}
	var all []string
	for i := range 3 {
		l.Shard = &Shard{Index: i, Total: 3}
		share, _ := l.Devices(new(Files), noSpace)
		if n := len(share); n < 900 || n > 1100 {
			t.Errorf("share %d has %d of 3000", i, n)
		}
		for _, d := range share {
			all = append(all, d.Target)
		}
	}
	slices.Sort(all)
	slices.Sort(l.Targets)
	if diff := cmp.Diff(l.Targets, all); diff != "" {
		t.Error(diff)
	}
	// Agents of different versions share one list: the hash may not change.
	if !(&Shard{Index: 2, Total: 3}).Has("192.0.2.7") || !(&Shard{Index: 1, Total: 3}).Has("192.0.2.8") {
		t.Errorf("%d %d", mix("192.0.2.7")%3, mix("192.0.2.8")%3)
	}
}

// The path of a secret may have the device's words; none leads elsewhere.
func TestFill(t *testing.T) {
	for _, tc := range []struct{ target, path, want string }{
		{"192.0.2.7:161", "/s/community", "/s/community"},
		{"192.0.2.7:161", "/s/{host}.txt", "/s/192.0.2.7.txt"},
		{"192.0.2.7:161", "/s/{target}", "/s/192.0.2.7:161"},
		{"tcp:[2001:db8::1]:161", "/s/{host}", "/s/2001:db8::1"},
		{"2001:db8::1", "/s/{host}", "/s/2001:db8::1"},
		{"https://bmc-1/redfish", "/s/{host}", "/s/bmc-1"},
		{"[2001:db8::1]", "/s/{host}", "/s/2001:db8::1"},
		{"a", "/s/{site}/{__login}", "/s/fra1/ops"},
		{"a", "/s/{rack}", "error"},
		{"a", "/s/{up}", "error"},
		{"a", "/s/{empty}", "error"},
		{"..", "/s/{host}", "error"},
		{"a/b", "/s/{target}", "error"},
		{"a", "/s/{", "/s/{"},
	} {
		d := Device{tc.target, map[string]string{"site": "fra1", "__login": "ops", "up": "../..", "empty": ""}}
		got, err := d.Fill(tc.path)
		if err != nil {
			got = "error"
		}
		if got != tc.want {
			t.Errorf("%s of %s: %q %v, want %q", tc.path, tc.target, got, err, tc.want)
		}
		if l := d.SeriesLabels(); l["__login"] != "" || l["site"] != "fra1" {
			t.Errorf("%v", l)
		}
	}
}

// The limits bound all devices of a list together, each by itself, and over a change of the list.
func TestPaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var paces Paces
		l := &List{MaxRequests: 10, MaxRequestsPerDevice: 6}
		one, other := paces.For("list", l), paces.For("list", l)
		start, sent := time.Now(), make(chan time.Duration, 1000)
		ctx, cancel := context.WithDeadline(t.Context(), start.Add(10*time.Second))
		defer cancel()
		for _, p := range []*Pace{one, other} {
			go func() {
				for p.Wait(ctx) == nil {
					sent <- time.Since(start)
				}
			}()
		}
		synctest.Wait()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := len(sent); n < 98 || n > 102 {
			t.Errorf("%d requests in 10 s, want 100", n)
		}
		l.MaxRequests = 1000
		ctx, cancel = context.WithDeadline(t.Context(), time.Now().Add(10*time.Second+50*time.Millisecond))
		defer cancel()
		n := 0
		err := error(nil)
		for p := paces.For("list", l); err == nil; n++ {
			err = p.Wait(ctx)
		}
		if n < 59 || n > 63 || !errors.Is(err, ErrPace) {
			t.Errorf("%d requests to one device in 10 s, want 60: %v", n, err)
		}
		if paces.For("list", &List{}) != nil || (*Pace)(nil).Wait(ctx) != nil {
			t.Error("a limit where there is none")
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("- targets: [a, b]\n  labels: {site: fra1}\n"))
	f.Add([]byte(`[{"targets": ["a"]}]`))
	f.Add([]byte("&a [*a]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		groups, err := Parse(text)
		if err != nil && groups != nil {
			t.Error("groups beside an error")
		}
	})
}
