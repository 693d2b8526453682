package pushgateway

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hwsagent/internal/exposition"
)

// FuzzPush: whatever comes is kept or refused, and what is kept can be shown and read again.
func FuzzPush(f *testing.F) {
	f.Add("a/b", false, []byte("# TYPE a counter\na{b=\"c\"} 1\n"))
	f.Add("", false, []byte("# TYPE h histogram\nh_bucket{le=\"+Inf\"} 1\nh_sum 1\nh_count 1\n# TYPE s summary\ns{quantile=\"0.5\"} 1\n"))
	f.Add("\xff", true, []byte("\x10\n\x01a\x18\x01\"\x09\x12\x07\x09\x00\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, value string, proto bool, body []byte) {
		r := newRig(t, t.TempDir())
		contentType := ""
		if proto {
			contentType = exposition.Protobuf
		}
		w := r.do("PUT", pathOf(map[string]string{"job": "x", "l": value}), contentType, string(body))
		if shows := r.shows(); w.Code != 200 && len(shows) > 0 &&
			(len(shows) != 2 || !strings.HasPrefix(shows[0], `{__name__="push_failure_time_seconds"`) || !strings.HasSuffix(shows[0], " set") || !strings.HasSuffix(shows[1], " 0")) {
			t.Errorf("after a refusal (%d): %v", w.Code, shows)
		}
		if diff := cmp.Diff(r.shows(), newRig(t, r.dir).shows()); diff != "" {
			t.Error(diff)
		}
	})
}

// pathOf returns where a group is pushed to.
func pathOf(group map[string]string) string {
	path := root
	for i, name := range append([]string{"job"}, slices.DeleteFunc(slices.Sorted(maps.Keys(group)), func(n string) bool { return n == "job" })...) {
		if i > 0 {
			path += "/" + escapedName(name)
		}
		path += base64Suffix + "/" + base64.RawURLEncoding.EncodeToString([]byte(group[name])) + "="
	}
	return path
}

// escapedName returns the name of a label with everything escaped that may be.
func escapedName(name string) string {
	var b strings.Builder
	b.WriteString("U__")
	for _, c := range name {
		if c == '_' {
			b.WriteString("__")
		} else {
			fmt.Fprintf(&b, "_%x_", c)
		}
	}
	return b.String()
}

// FuzzPath: a path that is taken has a job, and means what the same group written otherwise does.
func FuzzPath(f *testing.F) {
	f.Add("/metrics/job/a/b@base64/eA")
	f.Add("/metrics/job@base64/YS9i/a/b/ /")
	f.Add("/metrics/job/a/é@base64/=")
	f.Add("/metrics/job/a/U__foo_2e_bar@base64/YmF6/U___55_____x/y/")
	f.Fuzz(func(t *testing.T, path string) {
		group, err := groupOf(path)
		if err != nil {
			return
		}
		again, err := groupOf(pathOf(group))
		if group["job"] == "" || err != nil || !maps.Equal(group, again) {
			t.Errorf("%s is %q, and %s is %q %v", path, group, pathOf(group), again, err)
		}
	})
}

// FuzzFile: whatever a file says whose checksum is right, the store opens, and what it read it
// writes again.
func FuzzFile(f *testing.F) {
	r := newRig(f, f.TempDir())
	r.must(200, "PUT", "/metrics/job/a", "# TYPE a counter\na{b=\"c\"} 1\nb 2\n")
	labels := map[string]string{"job": "a"}
	whole, err := os.ReadFile(r.store.file(key(labels)))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(r.store.all()[0].body(), []byte{}, false)
	f.Add([]byte{}, r.store.all()[0].body(), true)
	f.Fuzz(func(t *testing.T, body, ended []byte, deleted bool) {
		if _, err := decode(append(whole[:len(whole):len(whole)], body...)); len(body) > 0 && err == nil {
			t.Error("a file with something behind its end is taken")
		}
		text, err := encode(&group{labels: labels, families: map[string]family{"x": {text: body}}, ended: ended, deleted: deleted})
		if err != nil {
			t.Fatal(err)
		}
		g, err := decode(text)
		if err != nil {
			return
		}
		again, err := encode(g)
		if err != nil {
			t.Fatal(err)
		}
		same := func(f, g family) bool { return bytes.Equal(f.text, g.text) }
		if h, err := decode(again); err != nil || !maps.EqualFunc(g.families, h.families, same) || !bytes.Equal(g.ended, h.ended) || g.deleted != h.deleted {
			t.Errorf("%q is written as %q: %v", body, again, err)
		}
		r := newRig(t, t.TempDir())
		if err := os.WriteFile(r.store.file(key(labels)), text, 0o600); err != nil {
			t.Fatal(err)
		}
		r = newRig(t, r.dir)
		_ = r.Each(t.Context(), func(*exposition.Sample) error { return nil }) // which may be none
		_ = r.Settle(t.Context())                                              // likewise
	})
}
