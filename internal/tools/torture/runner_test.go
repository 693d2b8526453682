package main

import (
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hwsagent/internal/tools/results"
)

// What go test says of a run with a red test, one that a panic cut short, and one that
// was skipped.
const stream = `{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"run","Package":"p","Test":"TestA/quick"}
{"Action":"pass","Package":"p","Test":"TestA/quick","Elapsed":0.1}
{"Action":"run","Package":"p","Test":"TestA/a_long_(one)"}
{"Action":"output","Package":"p","Test":"TestA/a_long_(one)","Output":"one sample is lost\n"}
{"Action":"fail","Package":"p","Test":"TestA/a_long_(one)","Elapsed":2}
{"Action":"fail","Package":"p","Test":"TestA","Elapsed":3}
{"Action":"run","Package":"p","Test":"TestB"}
{"Action":"skip","Package":"p","Test":"TestB","Elapsed":0}
{"Action":"run","Package":"p","Test":"TestC"}
{"Action":"output","Package":"p","Test":"TestC","Output":"panic: no\n"}
{"Action":"fail","Package":"p","Elapsed":4}
`

func TestFollow(t *testing.T) {
	r := runner{load: "1", seed: 7}
	var log strings.Builder
	got, err := r.follow(strings.NewReader(stream), &log, parts()[2])
	if err != nil {
		t.Fatal(err)
	}
	again := "HWSAGENT_E2E=1 HWSAGENT_TORTURE=1 HWSAGENT_SEED=7 go test -count=1 -v -timeout 40m0s -run "
	want := []results.Outcome{
		{Part: "kills", Test: "TestA/a_long_(one)", Verdict: failed, Seconds: 2, Replay: again + `'^TestA$/^a_long_\(one\)$' ./e2e/crashlab`},
		{Part: "kills", Test: "TestA", Verdict: failed, Seconds: 3, Replay: again + `'^TestA$' ./e2e/crashlab`},
		{Part: "kills", Test: "TestB", Verdict: "skipped"},
		{Part: "kills", Test: "TestC", Verdict: cutShort},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if want := "one sample is lost\npanic: no\n"; log.String() != want {
		t.Errorf("the log has %q, want %q", log.String(), want)
	}
}

func TestFollowWhatIsNoEvent(t *testing.T) {
	for _, text := range []string{"go: no such package\n", `{"Action":"build-fail","ImportPath":"p"}`} {
		if _, err := (&runner{}).follow(strings.NewReader(text), io.Discard, part{}); err == nil {
			t.Errorf("%q passes for a run", text)
		}
	}
}

// No test belongs to two parts.
func TestParts(t *testing.T) {
	names := map[string]bool{}
	for _, p := range parts() {
		if names[p.name] {
			t.Errorf("two parts are called %s", p.name)
		}
		names[p.name] = true
		for _, rest := range parts() {
			if rest.run == "" && rest.pkg == p.pkg && p.run != "" && !strings.Contains(strings.Join(rest.arguments(), " "), p.run) {
				t.Errorf("the tests of %s run in %s too", p.name, rest.name)
			}
		}
	}
}
