package status

import (
	"fmt"
	"math"
	"time"
)

// rateKnown is how long after a start the rate of incoming bytes begins to say something: the agent measures it from
// [RateFrom] on.
const rateKnown = RateFrom + time.Minute

// RateFrom is how long after a start the rate of bytes for [Lasts] is not measured: the log then gets the labels of all series.
const RateFrom = time.Minute

// Lasts returns how long the log can keep all incoming samples if all targets stop accepting: until wal.max_bytes is
// reached, or the free space falls to wal.min_free_bytes. It is unknown within the first two minutes and until there is a rate.
func Lasts(s Status) (time.Duration, bool) {
	var waits int64
	for _, t := range s.Targets {
		waits = max(waits, t.PendingBytes)
	}
	return lastsBeyond(s, waits, 0)
}

// lastsFor returns how long incoming samples can be kept for t if it accepts none of them.
func lastsFor(s Status, t TargetStatus) (time.Duration, bool) {
	return lastsBeyond(s, t.PendingBytes, t.MaxBacklogBytes)
}

// lastsBeyond returns how long there is room beside the given number of waiting bytes; limit bounds them in addition to
// the log's own limit, 0: no limit. Bytes that do not wait are removed first, so they count as room.
func lastsBeyond(s Status, waits, limit int64) (time.Duration, bool) {
	w := s.WAL
	early := !s.Started.IsZero() && s.Now.Sub(s.Started) < rateKnown
	if !s.Running || early || w.Error != "" || w.BytesPerSec <= 0 {
		return 0, false
	}
	room := int64(math.MaxInt64)
	if w.MaxBytes > 0 {
		room = w.MaxBytes - waits
	}
	if limit > 0 {
		room = min(room, limit-waits)
	}
	if w.FreeBytes > 0 {
		room = min(room, w.FreeBytes-w.MinFreeBytes+max(0, w.Bytes-waits))
	}
	return Seconds(float64(max(0, room)) / w.BytesPerSec), true
}

// FullIn estimates when the samples that wait for t fill its share of the log at the present rate. It is unknown if
// none wait, or if the target accepts data.
func FullIn(s Status, t TargetStatus) (time.Duration, bool) {
	stuck := t.State == StateHeld || t.State == StateRetrying || t.State == StatePaused || t.State == StateStopped
	if !stuck || t.PendingSamples == 0 || t.PendingBytes <= 0 {
		return 0, false
	}
	return lastsFor(s, t)
}

// Room says how long there is room for more samples for the target that has the least, as in "room for about 3 days"; "" if no target
// accepts nothing, or if that is unknown.
func Room(s Status, targets ...TargetStatus) (text string) {
	var least time.Duration
	for _, t := range targets {
		if d, ok := FullIn(s, t); ok && (text == "" || d < least) {
			least, text = d, "room for "+Lasting(d)
		}
	}
	return text
}

// roomProblems reports samples that are going to be lost or refused for lack of space.
func roomProblems(s Status) []Problem {
	var all []Problem
	w := s.WAL
	then := "then the oldest samples are dropped"
	if w.OnFull == "reject" {
		then = "then new samples are refused"
	}
	warn := time.Duration(w.WarnFullSeconds * float64(time.Second))
	for _, t := range s.Targets {
		left, known := FullIn(s, t)
		full := w.MaxBytes > 0 && float64(t.PendingBytes) >= fillWarn*float64(w.MaxBytes)
		if !full && (!known || left >= warn) {
			continue
		}
		p := Problem{SeverityWarning, "log", fmt.Sprintf("%s of the log's %s wait for %s", Size(t.PendingBytes), Size(w.MaxBytes), t.Name),
			"bring the target back, or raise wal.max_bytes and reload"}
		if full {
			p.Severity = SeverityError
		}
		if known {
			p.Text += "; it lasts " + Lasting(left) + " at this rate"
		}
		p.Text += "; " + then
		all = append(all, p)
		break
	}
	if free := freeProblem(s.Now, w); free != nil {
		all = append(all, *free)
	}
	return all
}

// freeProblem reports that little space is free on the file system, before that limits the log.
func freeProblem(now time.Time, w WALStatus) *Problem {
	if w.Error != "" || w.MinFreeBytes <= 0 || w.FreeBytes <= 0 || w.FreeBytes >= freeWarn*w.MinFreeBytes {
		return nil
	}
	replaced := "new samples replace the oldest"
	if w.OnFull == "reject" {
		replaced = "new samples are refused"
	}
	p := &Problem{SeverityWarning, "log", fmt.Sprintf("%s are free at %s. Below wal.min_free_bytes, %s, the log does not grow: %s",
		Size(w.FreeBytes), w.Dir, Size(w.MinFreeBytes), replaced), "make room on that file system"}
	if w.FreeBytes < w.MinFreeBytes {
		p.Severity = SeverityError
		since := ""
		if !w.LowSince.IsZero() {
			since = ", since " + Clock(now, w.LowSince)
		}
		p.Text = fmt.Sprintf("%s are free at %s, less than wal.min_free_bytes, %s%s: the log does not grow, and where it would, %s",
			Size(w.FreeBytes), w.Dir, Size(w.MinFreeBytes), since, replaced)
	}
	return p
}

// Lasting returns a length of time that was estimated, in one unit: more digits would change with each round of the inputs.
func Lasting(d time.Duration) string {
	const day = 24 * time.Hour
	for _, u := range []struct {
		least, unit time.Duration
		name        string
	}{{60 * day, 30 * day, "months"}, {14 * day, 7 * day, "weeks"}, {2 * day, day, "days"}, {2 * time.Hour, time.Hour, "hours"}, {2 * time.Minute, time.Minute, "minutes"}} {
		switch {
		case d >= 1000*day:
			return "years"
		case d >= u.least:
			return fmt.Sprintf("about %d %s", d/u.unit, u.name)
		}
	}
	return "a minute or less"
}
