package panics

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// logged is a guard and what it logs.
func logged(input string) (*Guard, *bytes.Buffer) {
	var b bytes.Buffer
	return New(input, slog.New(slog.NewTextHandler(&b, nil))), &b
}

func TestDoReturnsTheError(t *testing.T) {
	g, log := logged("probe host")
	want := errors.New("refused")
	if err := g.Do(func() error { return want }); !errors.Is(err, want) || As(err) != nil {
		t.Errorf("got %v", err)
	}
	if err := g.Run(func() {}); err != nil || g.Count() != 0 || log.Len() > 0 {
		t.Errorf("got %v, %d panics, log %q", err, g.Count(), log)
	}
}

func TestDoContainsPanics(t *testing.T) {
	var nothing []int
	noURL, noValue := func() *url.URL { return nil }(), func() any { return nil }()
	for _, tc := range []struct {
		name  string
		f     func() error
		value string
	}{
		{"constant", func() error { panic("String too long to encode as label.") }, "a value of type string"},
		{"index", func() error { return fmt.Errorf("%d", nothing[len(nothing)+5]) }, "runtime error: index out of range [5] with length 0"},
		{"nil pointer", func() error { return errors.New(noURL.Host) }, "runtime error: invalid memory address or nil pointer dereference"},
		{"nil", func() error { panic(noValue) }, "panic called with nil argument"},
		{"error", func() error { panic(errors.New("it broke")) }, "a value of type *errors.errorString"},
		{"struct", func() error { panic(struct{ Password string }{"canary"}) }, "a value of type struct { Password string }"},
		{"broken error", func() error { panic((*broken)(nil)) }, "a value of type *panics.broken"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g, log := logged("probe host")
			err := g.Do(tc.f)
			e := As(fmt.Errorf("round: %w", err))
			if e == nil || e.Value != tc.value || e.Input != "probe host" {
				t.Fatalf("got %#v", err)
			}
			if !strings.HasPrefix(e.Place, "internal/panics/panics_test.go:") || strings.ContainsAny(err.Error(), "\n\r") {
				t.Errorf("place %q, text %q", e.Place, err)
			}
			if !strings.HasPrefix(strings.TrimLeft(e.Stack, "\n"), "runtime.") && !strings.HasPrefix(e.Stack, "hwsagent/internal/panics.TestDoContainsPanics.") {
				t.Errorf("the stack does not begin at the panic:\n%s", e.Stack)
			}
			if g.Count() != 1 || !strings.Contains(log.String(), "level=ERROR") || !strings.Contains(log.String(), "stack=") {
				t.Errorf("%d panics, log %s", g.Count(), log)
			}
		})
	}
}

type broken struct{ text string }

func (b *broken) Error() string { return b.text }

// The place is the line that panicked, and the line of ours that called it.
func TestPlaceInALibrary(t *testing.T) {
	g, _ := logged("probe host")
	e := As(g.Run(func() { _ = strings.Repeat("x", -1) }))
	if e == nil || !strings.HasPrefix(e.Place, "strings/strings.go:") || !strings.Contains(e.Place, "(called at internal/panics/panics_test.go:") {
		t.Errorf("got %+v", e)
	}
}

// A panic of a deferred call replaces the first one; its place is the one reported.
func TestPanicWhileUnwinding(t *testing.T) {
	g, _ := logged("probe host")
	e := As(g.Run(func() {
		defer strings.Repeat("x", -1)
		panic("first")
	}))
	if e == nil || !strings.HasPrefix(e.Place, "strings/") {
		t.Errorf("got %+v", e)
	}
}

// No secret and no control character of a panic's value is in the error or the log, and its
// size is bounded.
func TestValueIsNeutral(t *testing.T) {
	const canary = "canary"
	for name, v := range map[string]any{
		"quoted":      `cannot parse "` + canary + `" here`,
		"quoted long": `cannot parse "a b ` + canary + ` c" here`,
		"single":      `cannot parse 'a b ` + canary + ` c' here`,
		"backquoted":  "cannot parse `a " + canary + "` here",
		"assignment":  "bad password=" + canary,
		"announced":   "the password is " + canary,
		"key":         "API key: " + canary,
		"header":      "Authorization: Bearer " + canary,
		"url":         "get https://u:" + canary + "@host/x?t=" + canary,
		"digits":      canary + "1234",
		"error":       &url.Error{Op: "Get", URL: "http://h/" + canary + "1", Err: errors.New("x")},
		"bytes":       []byte(canary),
		"map":         map[string]string{"a": canary},
		"megabytes":   strings.Repeat("abcdefgh", 1<<20) + canary,
		"many words":  strings.Repeat("word ", 1<<20) + canary,
		"escapes":     "a\x1b[31mb\nlevel=INFO msg=" + canary,
		"stringer":    url.UserPassword("u", canary+"1"),
	} {
		t.Run(name, func(t *testing.T) {
			g, log := logged("probe host")
			err := g.Run(func() { panic(v) })
			all := err.Error() + log.String() + As(err).Stack
			if strings.Contains(all, canary) {
				t.Errorf("it is in %s", all)
			}
			if len(As(err).Value) > maxValue || len(err.Error()) > 600 || strings.ContainsAny(err.Error(), "\x1b\n") {
				t.Errorf("%d bytes: %q", len(err.Error()), err)
			}
		})
	}
}

// A place is logged with its stack once, then at most once an hour with the number.
func TestRepetitionsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, log := logged("receiver import")
		first := time.Now()
		one := func() { panic("one") }
		for range 100 {
			_ = g.Run(one)
		}
		_ = g.Run(func() { panic("two") })
		if n := strings.Count(log.String(), "stack="); n != 2 || strings.Contains(log.String(), "again") {
			t.Errorf("%d stacks: %s", n, log)
		}
		time.Sleep(logAgain)
		_ = g.Run(one)
		_ = g.Run(one)
		if n := strings.Count(log.String(), "\n"); n != 3 || !strings.Contains(log.String(), "panics=100") {
			t.Errorf("%d lines: %s", n, log)
		}
		s := g.State()
		if s.Count != 103 || g.Count() != 103 || s.First != first || s.Time != first.Add(logAgain) || s.Last.Value != "a value of type string" {
			t.Errorf("got %+v", s)
		}
	})
}

// However many places panic, a guard keeps few of them and logs few lines.
func TestPlacesAreBounded(t *testing.T) {
	g, log := logged("probe host")
	for i := range 10 * maxPlaces {
		g.note(&Error{Input: "probe host", Place: fmt.Sprint(i)})
	}
	if len(g.places) != maxPlaces+1 || strings.Count(log.String(), "\n") != maxPlaces+1 || g.Count() != 10*maxPlaces {
		t.Errorf("%d places, %d lines", len(g.places), strings.Count(log.String(), "\n"))
	}
}

// A panic that an inner guard contained is an error to the outer one, and is counted once.
func TestNestedGuards(t *testing.T) {
	g, _ := logged("probe host")
	err := g.Do(func() error { return g.Run(func() { panic("x") }) })
	if As(err) == nil || g.Count() != 1 {
		t.Errorf("%v, %d panics", err, g.Count())
	}
}

// Without a guard's name and log a panic is contained all the same.
func TestNilGuard(t *testing.T) {
	var g *Guard
	if err := g.Run(func() { panic("x") }); As(err) == nil || g.Count() != 0 {
		t.Errorf("got %v", err)
	}
}

func TestGuardIsSafeForConcurrentUse(t *testing.T) {
	g := New("probe host", slog.New(slog.DiscardHandler))
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 50 {
				_ = g.Run(func() { panic("x") })
				_ = g.State()
			}
		})
	}
	wg.Wait()
	if g.Count() != 800 {
		t.Errorf("%d panics", g.Count())
	}
}
