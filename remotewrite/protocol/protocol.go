// Package protocol decides which version of remote write a target gets.
package protocol

import (
	"sync"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/wire"
)

// FallbackTime is how long a target gets 1.0 after it did not accept 2.0. Then one request tries 2.0
// again, because receivers are upgraded.
const FallbackTime = time.Hour

// fallbackOnceProven replaces FallbackTime where the target has confirmed data as 2.0 since it was asked last.
const fallbackOnceProven = time.Minute

// Versions decides which version a target gets: the one that the entry asks for, or 1.0 for a time
// if the target does not accept 2.0. The knowledge lasts as long
// as the queue: neither a changed entry nor a restart keeps it. Safe for concurrent use.
//
// Two answers prove that a target does not accept 2.0: 415, or a
// 2xx without any sample written. Other failures may have other reasons: then the
// same samples are tried as 1.0, and success is the proof.
type Versions struct {
	newer bool // the entry asks for 2.0, or leaves the choice

	mu       sync.Mutex
	until    time.Time    // 1.0 is in use until then; zero: there is no evidence against 2.0
	why      string       // to show to people
	proven   bool         // the target confirmed data as 2.0 and has not refused 2.0 since
	olderToo bool         // it accepted data as 1.0
	silent   bool         // it answers 2xx to 2.0, even to an empty write, without reading it
	tried    time.Time    // see SpendTry
	turn     uint64       // grows with each change of the version in use
	empty    wire.Version // of the last empty write that was accepted
	emptyOK  bool         // there was one
	emptyBad bool         // the last empty write was answered with a server error
	tests    [numTests]int
}

// New returns the versions of an entry's target; newer is set if the entry asks for 2.0, or leaves the choice.
func New(newer bool) *Versions { return &Versions{newer: newer} }

// Newer reports whether the entry asks for 2.0, or leaves the choice.
func (p *Versions) Newer() bool { return p.newer }

// Test is the kind of request that tests a held target.
type Test uint8

// The kinds of tests.
const (
	ByEmpty Test = iota // an empty write
	ByHeld              // a waiting sample
	ByTaken             // a sample that the target accepted before
	numTests
)

// Choice is the version of a request. A trial is sent as 1.0 although 2.0 is in use: its success
// proves that the target does not accept 2.0.
type Choice struct {
	Version wire.Version
	Trial   bool
	failing bool // a trial because 2.0 gets only 5xx: any verdict on the samples is proof
	turn    uint64
}

// Version returns the version in use.
func (p *Versions) Version() wire.Version {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inUse()
}

// inUse is Version; p.mu is held.
func (p *Versions) inUse() wire.Version {
	if !p.newer || time.Now().Before(p.until) {
		return wire.V1
	}
	return wire.V2
}

// OlderAfter is the number of consecutive 5xx answers to a batch after which it is sent as 1.0 once,
// if 2.0 is not proven: some receivers fail at messages that they cannot decode.
const OlderAfter = 5

// Choose returns the version for a batch. older asks for a trial as 1.0; carried is set if 1.0
// can carry the batch. failures counts its 5xx answers.
func (p *Versions) Choose(older, carried bool, failures int) Choice {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := Choice{Version: p.inUse(), turn: p.turn}
	if c.Version == wire.V1 || !carried {
		return c
	}
	if older || !p.proven && failures%(OlderAfter+1) == OlderAfter {
		c.Version, c.Trial, c.failing = wire.V1, true, !older
	}
	return c
}

// ChooseTest returns the version for a test of a held target: both by turns, if the target has not accepted data
// in the version in use. Each kind of test has turns of its own; with common turns
// a kind that comes every other time would always get the same version.
func (p *Versions) ChooseTest(of Test) Choice {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.chooseTest(of)
}

// chooseTest is ChooseTest; p.mu is held.
func (p *Versions) chooseTest(of Test) Choice {
	c := Choice{Version: p.inUse(), turn: p.turn}
	if !p.newer || p.proven || c.Version == wire.V1 && (p.olderToo || p.silent) {
		return c
	}
	if p.tests[of]++; p.tests[of]%2 == 0 {
		c.Version = wire.V2 - c.Version
	}
	c.Trial = c.Version == wire.V1 && p.inUse() == wire.V2
	return c
}

// ForEmpty returns the version for an empty write: one in which the target accepted an empty write before. After a server error both come by
// turns, because some receivers fail at messages that they cannot decode.
func (p *Versions) ForEmpty(test bool) wire.Version {
	p.mu.Lock()
	defer p.mu.Unlock()
	if test || p.emptyBad {
		return p.chooseTest(ByEmpty).Version
	}
	if p.newer && p.emptyOK && !p.proven {
		return p.empty
	}
	return p.inUse()
}

// Saw evaluates what an answer shows about the versions. It reports whether this answer made the target fall back
// to 1.0, and the reason.
func (p *Versions) Saw(c Choice, a client.Answer, v client.Verdict) (why string, fellBack bool) {
	if !p.newer {
		return "", false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if a.Samples == 0 && a.Status != 0 {
		p.emptyBad = a.Status >= 500
	}
	switch {
	case v == client.Older && a.Status/100 == 2:
		p.silent, p.emptyOK = true, p.emptyOK && p.empty == wire.V1
		proven := p.proven
		why, fellBack = p.fall("answers " + a.String() + " to remote write 2.0 and writes nothing")
		if proven { // a program in front of the target may have answered, and 1.0 may not carry all samples
			p.until = time.Now().Add(fallbackOnceProven)
		}
		return why, fellBack
	case v == client.Delivered && a.Samples == 0:
		p.empty, p.emptyOK = a.Version, true
	case v == client.Older:
		p.proven = false // the target changed, so its state is unknown again
	case v == client.Delivered && a.Version == wire.V2:
		if c.turn == p.turn { // else it was sent before the target showed that it does not accept 2.0
			p.proven, p.silent = true, false
			p.ask()
		}
	case v == client.Delivered:
		if p.olderToo = true; c.Trial {
			return p.fall("accepts as remote write 1.0 the samples that it did not accept as 2.0")
		}
	case c.Trial && v == client.Suspect && a.AboutTime(): // the answer comes from its database
		return p.fall("answers for samples as remote write 1.0 only")
	case c.failing && (v == client.Suspect || v == client.Split):
		return p.fall("fails at remote write 2.0")
	case a.Status == client.StatusUnsupported && a.Version == wire.V1:
		p.olderToo = false
		p.ask() // only 2.0 is left
	}
	return "", false
}

// fall makes 1.0 the version in use. p.mu is held.
func (p *Versions) fall(why string) (string, bool) {
	before := p.inUse()
	p.proven, p.why, p.until = false, why, time.Now().Add(FallbackTime)
	if before == wire.V2 {
		p.turn++
	}
	return why, before == wire.V2
}

// ask makes 2.0 the version in use. p.mu is held.
func (p *Versions) ask() {
	if p.inUse() == wire.V1 {
		p.turn++
	}
	p.until, p.why = time.Time{}, ""
}

// FallBack makes 1.0 the version in use after the target answered that it does not accept 2.0.
func (p *Versions) FallBack(a client.Answer) (why string, fellBack bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fall("answers " + a.String() + " to remote write 2.0")
}

// TakesOlder reports whether the target accepted data as 1.0.
func (p *Versions) TakesOlder() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.olderToo
}

// SpendTry reports whether a batch that was refused for good as 2.0 may be sent as 1.0: once
// in FallbackTime, because refused samples should not be sent again.
func (p *Versions) SpendTry() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if !p.tried.IsZero() && now.Sub(p.tried) < FallbackTime {
		return false
	}
	p.tried = now
	return true
}

// EmptyTells reports whether the target accepted an empty write in a version that it may read.
func (p *Versions) EmptyTells() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.emptyOK || !p.newer
}

// IsProven reports whether the target accepted data as 2.0.
func (p *Versions) IsProven() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.proven
}

// Fallback returns why 1.0 is in use where 2.0 was asked for, and until when; why is "" if there is no fallback.
func (p *Versions) Fallback() (why string, until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inUse() == wire.V2 || !p.newer {
		return "", time.Time{}
	}
	return p.why, p.until
}
