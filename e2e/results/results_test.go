package results

import (
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
	want := Line{What: "kill -9 at random", Count: 500, Lost: 2, Seed: 7, Figures: map[string]float64{"seconds_max": 0.5}}
	t.Run("one", func(t *testing.T) {
		Add(t, want)
		if _, err := Read(file); err == nil {
			t.Error("it was written before the test had ended")
		}
	})
	want.Test = "TestAdd/one"
	got, err := Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Run{Lines: []Line{want}}, got, cmpopts.IgnoreFields(Line{}, "At")); diff != "" {
		t.Error(diff)
	}
	if got.Lines[0].At.IsZero() {
		t.Error("the line has no time")
	}
}

func TestNothingIsKeptUnlessAsked(t *testing.T) {
	t.Setenv(Env, "")
	Add(t, Line{What: "anything"}) // its end would fail on a file without a name
}

func TestAppendFromMany(t *testing.T) {
	file := filepath.Join(t.TempDir(), "results")
	long := strings.Repeat("x", 10_000)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				if err := Append(file, Entry{Line: &Line{What: long}}); err != nil {
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
	for _, text := range []string{"{}\n", "{\"line\":{\"what\":\"cut", "[]\n"} {
		if _, err := parse(strings.NewReader(text)); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}

func TestEnded(t *testing.T) {
	run := Run{Outcomes: []Outcome{{Part: "a"}, {Test: "TestA", Verdict: "ok"}, {Test: "TestA/b", Verdict: "FAILED"}, {Test: "TestAB", Verdict: "skipped"}}}
	for test, want := range map[string]string{"TestA": "ok", "TestA/b": "FAILED", "TestA/b/c": "FAILED", "TestA/c": "ok", "TestAB": "skipped", "TestC": ""} {
		if got, _ := run.Ended(test); got.Verdict != want {
			t.Errorf("%s: %q, want %q", test, got.Verdict, want)
		}
	}
}
