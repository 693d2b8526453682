//go:build linux

package kernel

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"hwsagent/probes"
)

// TestFlood: a program writes 100 MB to the log between two rounds. A round is bounded, and the kernel's message after it counts in the next one.
func TestFlood(t *testing.T) {
	m := &machineLog{t: t, boot: "a"}
	line := "a program said " + strings.Repeat("x", 505)
	for range maxRound + 1000 {
		m.say(1, line)
	}
	m.say(0, said[0].message)
	p := m.probe("")
	p.open = func() (source, error) { return &listed{records: m.records}, nil } // a socket for each record would take seconds
	got, err := round(t, p)
	if !errors.Is(err, probes.ErrPartial) || !strings.Contains(err.Error(), fmt.Sprintf("%d records were read; the next round continues", maxRound)) || strings.Contains(got, "nvidia_xid") {
		t.Errorf("%v\n%.300s", err, got)
	}
	want(t, p, "lost_messages_total 0", "errors_total pci:0000:3b:00.0 0000:3b:00.0 nvidia_xid 79 1")
}

// listed gives records from memory.
type listed struct{ records []string }

func (l *listed) Next() ([]byte, error) {
	if len(l.records) == 0 {
		return nil, errEnd
	}
	next := l.records[0]
	l.records = l.records[1:]
	return []byte(next), nil
}

func (l *listed) Close() error { return nil }

// TestHalf: a record that is cut, wherever, counts as what is left of it says, or not at all; those after it count.
func TestHalf(t *testing.T) {
	whole := "3,5,9,-;" + said[0].message
	for n := range len(whole) {
		log := &script{steps: []error{nil, errEnd}, record: []byte(whole[:n])}
		p, err := New(Config{}, "")
		if err != nil {
			t.Fatal(err)
		}
		p.open, p.boot = func() (source, error) { return log, nil }, func() (string, error) { return "a", nil }
		got, err := round(t, p)
		if err != nil || strings.Count(got, "errors_total") > 1 || strings.Contains(got, "errors_total") && !strings.Contains(got, "nvidia_xid 79 1") && !strings.Contains(got, "nvidia_xid 7 1") {
			t.Errorf("%q: %v\n%s", whole[:n], err, got)
		}
	}
}

// TestDisappears: /dev/kmsg is gone, as in a container that is started anew without it, and comes back: nothing counts twice.
func TestDisappears(t *testing.T) {
	m := &machineLog{t: t, boot: "a"}
	m.say(0, said[0].message)
	p := m.probe("")
	const once = "errors_total pci:0000:3b:00.0 0000:3b:00.0 nvidia_xid 79 1"
	want(t, p, "lost_messages_total 0", once)
	open := p.open
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	p.open = func() (source, error) { return nil, os.ErrNotExist }
	if got, err := round(t, p); !errors.Is(err, os.ErrNotExist) || got != "" {
		t.Errorf("without it: %v\n%s", err, got)
	}
	p.open = open
	want(t, p, "lost_messages_total 0", once)
}
