// Package tapetest checks recordings of probes: it redacts a recording, writes it, reads it back, replays it, and
// compares the samples with those of the hardware.
package tapetest

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"hwsagent/probes"
	"hwsagent/probes/tape"
)

// Redacter is a probe that can redact its recordings.
type Redacter interface {
	Redact(t *tape.Tape, r *tape.Redactor)
}

// File redacts the tape except for the kinds to keep, writes it and reads it back.
func File(t testing.TB, from *tape.Tape, p Redacter, keep ...string) (read *tape.Tape, text string) {
	t.Helper()
	if from.Full() || len(from.Exchanges) == 0 {
		t.Fatalf("the tape has %d exchanges; full: %v", len(from.Exchanges), from.Full())
	}
	r, err := tape.NewRedactor(keep)
	if err != nil {
		t.Fatal(err)
	}
	p.Redact(from, r)
	r.Tape(from)
	var b bytes.Buffer
	if err := from.Write(&b); err != nil {
		t.Fatal(err)
	}
	if read, err = tape.Read(bytes.NewReader(b.Bytes())); err != nil {
		t.Fatalf("%v\n%s", err, b.String())
	}
	return read, b.String()
}

// Lines returns the samples of a round in order, without durations of reading and series with the given prefixes; if bare,
// only names and values, without labels.
func Lines(r *probes.Round, bare bool, without ...string) []string {
	var all []string
	for _, s := range r.Samples() {
		name := cmp.Or(s.Name, s.Family.Name)
		if strings.Contains(name, "scrape") || slices.ContainsFunc(without, func(p string) bool { return strings.HasPrefix(name, p) }) {
			continue
		}
		text := name
		if !bare {
			text += fmt.Sprintf("%q", s.Labels)
		}
		all = append(all, fmt.Sprintf("%s %v", text, s.Value))
	}
	slices.Sort(all)
	return all
}

// Collect runs one round of a probe.
func Collect(t testing.TB, p probes.Probe) *probes.Round {
	t.Helper()
	r := probes.NewRound(0)
	if err := p.Collect(t.Context(), r); err != nil {
		t.Logf("collect: %v", err)
	}
	if len(r.Samples()) == 0 {
		t.Fatal("no samples")
	}
	return r
}

// Recorder is a probe whose hardware can be recorded.
type Recorder interface {
	probes.Probe
	Redacter
	Record(ctx context.Context, t *tape.Tape) error
}

// Case is hardware to record and replay.
type Case struct {
	Type    string
	New     func() Recorder // a probe that reads the hardware
	Replay  func(*tape.Tape) (probes.Probe, error)
	Partial bool     // a part of the hardware fails
	Without []string // prefixes of series that are not recorded
	IDs     []string // present only in a recording that keeps everything
	Secrets []string // present in no recording
}

// Check makes one recording that keeps everything and one that does not: replayed, both give the same series, the second with
// stand-ins in labels.
func (c Case) Check(t *testing.T) {
	t.Helper()
	whole := Collect(t, c.New())
	for _, keep := range [][]string{tape.Kinds(), nil} {
		taped, p := tape.New(c.Type), c.New()
		if err := p.Record(t.Context(), taped); (err != nil) != c.Partial {
			t.Errorf("record: %v, want an error: %v", err, c.Partial)
		}
		file, text := File(t, taped, p, keep...)
		again, err := c.Replay(file)
		if err != nil {
			t.Fatal(err)
		}
		bare := keep == nil
		if got, want := Lines(Collect(t, again), bare, c.Without...), Lines(whole, bare, c.Without...); !slices.Equal(got, want) {
			t.Errorf("kept %q: %d series, want %d\n%s\n\nwant\n%s", keep, len(got), len(want), strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		for _, id := range c.IDs {
			if strings.Contains(text, id) != (keep != nil) {
				t.Errorf("kept %q: whether %q is in the recording is %v", keep, id, keep == nil)
			}
		}
		for _, secret := range c.Secrets {
			if strings.Contains(text, secret) {
				t.Errorf("kept %q: %q is in the recording", keep, secret)
			}
		}
	}
}
