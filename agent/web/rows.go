package web

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Bounds of the list of targets.
const (
	manyRows = 12 // beyond that, rows use two columns if there is room
	maxOpen  = 5  // how many targets with problems are open at first
)

// rowView is a target for the page: a row that can be opened.
type rowView struct {
	TargetStatus
	Level                             string // the row's colour: ok, warning, error, note
	Open                              bool
	Word                              string // state or delivery
	Lag, Waiting, Sent, Lost24        string // the row
	Size, Oldest, FullIn, Retry       string // shown when the row is open
	Refused, Delivered, Success, Skew string
	Error, Next, Account, Ends        string
	Notes                             []string
	Plots                             []plotView
	Backlog                           int // share of the log's budget, in percent
}

// newRows returns the rows, those of targets with problems first. Rows are open if no other target has the same
// trouble.
func newRows(s Status, said []Finding) []rowView {
	rows := make([]rowView, 0, len(s.Targets))
	for _, t := range s.Targets {
		rows = append(rows, newRow(s, t))
	}
	slices.SortStableFunc(rows, func(a, b rowView) int { return cmp.Compare(levelRank(a.Level), levelRank(b.Level)) })
	alone := map[string]bool{}
	for _, f := range said {
		if f.Targets() && len(f.Names) == 1 {
			alone[f.Names[0]] = true
		}
	}
	open := 0
	for i := range rows {
		if open < maxOpen && alone[rows[i].Name] {
			rows[i].Open = true
			open++
		}
	}
	return rows
}

// levelRank orders levels, the worst first.
func levelRank(level string) int {
	if level == LevelOK {
		return severity(SeverityNote) + 1
	}
	return severity(level)
}

func newRow(s Status, t TargetStatus) rowView {
	r := rowView{
		TargetStatus: t, Level: levelOf(s, t), Word: word(s, t), Lag: span(seconds(t.LagSeconds)), Waiting: count(t.PendingSamples),
		Sent: rate(t.SentPerSec), Size: size(t.PendingBytes), Oldest: clock(s.Now, t.OldestPending), Retry: count(t.Failed),
		Refused: count(t.Ledger.Dropped["rejected"]), Delivered: count(t.Ledger.Delivered), Success: ago(s.Now, t.LastSuccess),
		Backlog: percent(t.PendingBytes, s.WAL.MaxBytes), Ends: expiries(s, t),
	}
	if n := lost24(s, t.Name); n > 0 {
		r.Lost24 = count(n)
	}
	if d, ok := FullIn(s, t); ok {
		r.FullIn = "lasts " + lasting(d) + " at this rate"
	}
	if t.LastError != "" {
		r.Error = fmt.Sprintf("%s, %s", clock(s.Now, t.LastErrorAt), ago(s.Now, t.LastErrorAt))
	}
	if r.LastError = brief(t, t.LastError); saidAlready(s, t, r.LastError) {
		r.LastError = ""
	}
	if t.NextTry.After(s.Now) {
		r.Next = until(s.Now, t.NextTry)
	}
	if t.ClockSkew.Abs() > time.Second {
		r.Skew = span(t.ClockSkew) + " behind the receiver"
		if t.ClockSkew > 0 {
			r.Skew = span(t.ClockSkew) + " ahead of the receiver"
		}
	}
	for _, p := range s.Problems {
		if p.Subject == "target "+t.Name && p.Severity == SeverityNote {
			r.Notes = append(r.Notes, p.Text)
		}
	}
	a := t.Ledger
	r.Account = fmt.Sprintf("%s appended = %s delivered + %s filtered + %s dropped + %s waiting",
		count(a.Appended), count(a.Delivered), count(a.Filtered), count(sum(a.Dropped)), count(a.Pending))
	return r
}

// levelOf returns the level of a target's worst problem.
func levelOf(s Status, t TargetStatus) string {
	level := LevelOK
	for _, p := range s.Problems {
		if p.Subject == "target "+t.Name && severity(p.Severity) < severity(SeverityNote) && level != SeverityError {
			level = p.Severity
		}
	}
	if level == LevelOK && deliveryOf(s, t) != Delivering {
		level = SeverityNote
	}
	return level
}

// saidAlready reports whether the problems of a target already have an error.
func saidAlready(s Status, t TargetStatus, text string) bool {
	return slices.ContainsFunc(s.Problems, func(p Problem) bool { return p.Subject == "target "+t.Name && strings.Contains(p.Text, text) })
}

// word describes the state of the target's queue, or, while the queue is fine, the delivery of its data.
func word(s Status, t TargetStatus) string {
	switch t.State {
	case StateHeld, StateRetrying, StatePaused, StateStopped, StateOrphan:
		return t.State
	}
	return strings.ReplaceAll(deliveryOf(s, t), "_", " ")
}
