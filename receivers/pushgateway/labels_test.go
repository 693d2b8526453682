package pushgateway

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"hwsagent/internal/tools/tier"
)

// manyLabels returns a line with so many labels.
func manyLabels(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `l%d="a=b\"=",`, i)
	}
	return "m{" + b.String() + "} 1\n"
}

// A line with thousands of labels is refused before it is parsed: the parser of text compares
// each label with all before it, so that a request of a few hundred kilobytes takes minutes.
func TestTextWithThousandsOfLabels(t *testing.T) {
	r := newRig(t, t.TempDir())
	for name, body := range map[string]string{
		"a series":              manyLabels(8000),
		"after a comment":       "# TYPE m gauge\n" + manyLabels(8000),
		"the name among labels": `{"m",` + manyLabels(8000)[2:],
		"without an end":        strings.TrimSuffix(manyLabels(8000), "} 1\n"),
	} {
		began := time.Now()
		w := r.do("PUT", "/metrics/job/x", "", body)
		if w.Code != 400 || !strings.Contains(w.Body.String(), "labels") {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
		if took := time.Since(began); took > tier.Within(5*time.Second) {
			t.Errorf("%s: refused after %s", name, took)
		}
	}
}

// As many labels as the limit allows are taken; what only looks like labels does not count.
func TestTextWithAsManyLabelsAsAllowed(t *testing.T) {
	for name, body := range map[string]string{
		"labels":    manyLabels(60),
		"a value":   `m{a="` + strings.Repeat("x=", 500) + "\"} 1\n",
		"a comment": "# HELP m " + strings.Repeat("x=", 500) + "\nm 1\n",
		"quotes":    `m{a="` + strings.Repeat(`\"=`, 500) + "\"} 1\n",
		"a bucket":  "# TYPE h histogram\nh_bucket{" + strings.TrimSuffix(manyLabels(60)[2:], "} 1\n") + "le=\"+Inf\"} 1\n",
	} {
		if w := newRig(t, t.TempDir()).do("PUT", "/metrics/job/x", "", body); w.Code != 200 {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}
