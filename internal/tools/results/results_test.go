package results

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestAdd(t *testing.T) {
	file := filepath.Join(t.TempDir(), "results")
	t.Setenv(Env, file)
	begin(t, file)
	want := Line{What: "kill -9 at random", Count: 500, Lost: 2, Seed: 7, Figures: map[string]float64{"seconds_max": 0.5}}
	t.Run("one", func(t *testing.T) {
		Add(t, want)
		if run, err := Read(file); err != nil || len(run.Lines) > 0 {
			t.Error("it was written before the test had ended")
		}
	})
	want.Test = "TestAdd/one"
	got, err := Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Run{Machines: []Machine{{Commit: "a"}}, Lines: []Line{want}}, got, cmpopts.IgnoreFields(Line{}, "At")); diff != "" {
		t.Error(diff)
	}
	if got.Lines[0].At.IsZero() {
		t.Error("the line has no time")
	}
}

// begin makes a file of results as a full run does.
func begin(t *testing.T, file string) {
	t.Helper()
	if err := Append(file, Entry{Machine: &Machine{Commit: "a"}}); err != nil {
		t.Fatal(err)
	}
}

func TestNothingIsKeptUnlessAsked(t *testing.T) {
	t.Setenv(Env, "")
	Add(t, Line{What: "anything"}) // its end would fail on a file without a name
}

func TestAppendFromMany(t *testing.T) {
	file := filepath.Join(t.TempDir(), "results")
	begin(t, file)
	long := strings.Repeat("x", 10_000)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 50 {
				if err := Append(file, Entry{Line: &Line{What: fmt.Sprint(long, i, " ", j)}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if run, err := Read(file); err != nil || len(run.Lines) != 400 {
		t.Errorf("%d lines, want 400: %v", len(run.Lines), err)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{"", "{\"line\":{}}\n", "{}\n", "{\"line\":{\"what\":\"cut", "[]\n"} {
		if _, err := parse(strings.NewReader(text)); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}

func TestRepeated(t *testing.T) {
	const file = `{"machine":{"commit":"a"}}
{"outcome":{"part":"disk","verdict":"began"}}
{"line":{"test":"TestA","what":"full","count":1,"failed":true}}
{"outcome":{"part":"disk","test":"TestA","verdict":"FAILED"}}
{"outcome":{"part":"disk","verdict":"FAILED"}}
{"machine":{"commit":"b"}}
{"outcome":{"part":"disk","verdict":"began"}}
{"line":{"test":"TestA","what":"full","count":2}}
{"outcome":{"part":"disk","test":"TestA","verdict":"ok"}}
{"outcome":{"part":"disk","verdict":"ok"}}
{"outcome":{"part":"size","verdict":"began"}}
{"machine":{"commit":"c"}}
{"outcome":{"part":"kills","verdict":"ok"}}
`
	got, err := parse(strings.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	want := Run{
		Machines: []Machine{{Commit: "a"}, {Commit: "b"}, {Commit: "c"}},
		Lines:    []Line{{Test: "TestA", What: "full", Count: 2}},
		Outcomes: []Outcome{{Part: "disk", Test: "TestA", Verdict: "ok"}, {Part: "disk", Verdict: "ok"}, {Part: "size", Verdict: Began}, {Part: "kills", Verdict: "ok"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
