package web

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"hwsagent/agent/status"
)

// rowView is a target for the page: a row that can be opened.
type rowView struct {
	status.TargetStatus
	Level                             string // the row's colour: ok, warning, error, note
	Word                              string // state or delivery
	Lag, Waiting, Sent, Gone          string // the row
	Size, FullIn, Retry               string // shown when the row is open
	Oldest, ErrorAt                   moment
	Refused, Delivered, Success, Skew string
	Error, Down, Account, Ends        string
	Notes                             []string
	Plots                             []plotView
	Curve                             string // address of the row's curve; empty: none
	Backlog                           int    // share of the log's budget, in percent
}

// newRows returns the rows, those of targets with problems first.
func newRows(s status.Status) []rowView {
	rows := make([]rowView, 0, len(s.Targets))
	for _, t := range s.Targets {
		rows = append(rows, newRow(s, t))
	}
	slices.SortStableFunc(rows, func(a, b rowView) int { return cmp.Compare(status.Rank(a.Level), status.Rank(b.Level)) })
	return rows
}

func newRow(s status.Status, t status.TargetStatus) rowView {
	r := rowView{
		TargetStatus: t, Level: status.LevelOf(s, t), Word: status.Word(s, t), Lag: status.Span(status.Seconds(t.LagSeconds)), Waiting: status.Count(t.PendingSamples),
		Sent: status.Rate(t.SentPerSec), Size: status.Size(t.PendingBytes), Oldest: newMoment(s.Now, t.OldestPending), Retry: status.Count(t.Failed),
		Refused: status.Count(t.Ledger.Dropped["rejected"]), Delivered: status.Count(t.Ledger.Delivered), Success: status.Ago(s.Now, t.LastSuccess),
		Backlog: status.Percent(t.PendingBytes, s.WAL.MaxBytes), Ends: status.ExpiryText(s, t), Down: status.Down(s, t),
	}
	if gone := status.Last24(s, t.Name); gone.Any() {
		r.Gone = gone.Text()
	}
	if d, ok := status.FullIn(s, t); ok {
		r.FullIn = "lasts " + status.Lasting(d) + " at this rate"
	}
	if t.LastError != "" {
		r.ErrorAt, r.Error = newMoment(s.Now, t.LastErrorAt), status.Ago(s.Now, t.LastErrorAt)
	}
	if r.LastError = status.Brief(t, t.LastError); saidAlready(s, t, r.LastError) {
		r.LastError = ""
	}
	if t.ClockSkew.Abs() > time.Second {
		r.Skew = status.Span(t.ClockSkew) + " behind the receiver"
		if t.ClockSkew > 0 {
			r.Skew = status.Span(t.ClockSkew) + " ahead of the receiver"
		}
	}
	for _, p := range s.Problems {
		if p.Subject == "target "+t.Name && p.Severity == status.SeverityNote {
			r.Notes = append(r.Notes, p.Text)
		}
	}
	a := t.Ledger
	r.Account = fmt.Sprintf("%s appended = %s delivered + %s filtered + %s dropped + %s waiting",
		status.Count(a.Appended), status.Count(a.Delivered), status.Count(a.Filtered), status.Count(status.Sum(a.Dropped)), status.Count(a.Pending))
	return r
}

// saidAlready reports whether the problems of a target already have an error.
func saidAlready(s status.Status, t status.TargetStatus, text string) bool {
	return slices.ContainsFunc(s.Problems, func(p status.Problem) bool { return p.Subject == "target "+t.Name && strings.Contains(p.Text, text) })
}
