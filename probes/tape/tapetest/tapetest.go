// Package tapetest takes a recording through a file, as a person who gives it away would.
package tapetest

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"hwsagent/probes"
	"hwsagent/probes/tape"
)

// Redacter is a probe that knows what in its recordings tells whose the hardware is.
type Redacter interface {
	Redact(t *tape.Tape, r *tape.Redactor)
}

// File redacts the tape but for the kinds to keep, writes it and reads it again.
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

// Lines are the samples of a round but for the times that reading took and what the prefixes name, in order; without labels, as the names and values alone, if bare.
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
