package agent

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"hwsagent/agent/events"
	"hwsagent/wal"
	"hwsagent/web"
)

// ErrDamaged means that the log has unreadable parts. They are skipped and counted; everything else is delivered.
var ErrDamaged = errors.New("the log is damaged")

// ErrNoLog means that no agent has ever run on the storage directory.
var ErrNoLog = errors.New("there is no log")

// ErrInUse means that another agent runs on the storage directory.
var ErrInUse = wal.ErrLocked

// OfflineStatus returns the status that can be read in the storage directory of a stopped agent: the log, and each
// target's account and backlog. It changes nothing, and takes no longer for a large backlog than for a small one. It
// returns an error if the directory has no log.
func OfflineStatus(storage string, now time.Time) (web.Status, error) {
	if abs, err := filepath.Abs(storage); err == nil {
		storage = abs
	}
	in, err := found(wal.Glance(storage))
	if err != nil {
		return web.Status{}, err
	}
	s := web.Status{Schema: 1, Version: Version, Now: now, Targets: []web.TargetStatus{}, Probes: []web.ProbeStatus{}}
	s.WAL = web.WALStatus{Dir: storage, Segments: len(in.Segments), Appended: in.Head.Total}
	if free, err := freeBytes(storage); err == nil {
		s.WAL.FreeBytes = free
	}
	for i, seg := range in.Segments {
		if i == 0 {
			s.WAL.FirstSegment = seg.Number
		}
		s.WAL.LastSegment = seg.Number
		s.WAL.Bytes += seg.Bytes
	}
	for _, t := range in.Targets {
		s.Targets = append(s.Targets, offlineTarget(t, now))
	}
	journal, _ := events.Open(storage) // events that cannot be read are still in the ledgers, without their time
	s.Losses = journal.Account(s)
	return web.Judged(s), nil
}

// offlineTarget returns a target's status.
func offlineTarget(t wal.TargetInspection, now time.Time) web.TargetStatus {
	s := web.TargetStatus{
		Name: t.Name, State: web.StateStopped, Why: t.Problem, PendingSamples: t.Pending, PendingBytes: t.PendingBytes,
		PausedSince: t.PausedSince,
		Ledger:      web.LedgerStatus{Appended: t.Appended, Delivered: t.Delivered, Filtered: t.Filtered, Dropped: t.Dropped, Pending: t.Pending, Balanced: t.Balanced},
	}
	for reason, n := range t.Dropped {
		if reason != wal.Resent.String() {
			s.Ledger.Lost += n
		}
	}
	if !t.Oldest.IsZero() {
		s.OldestPending, s.LagSeconds = t.Oldest, max(0, now.Sub(t.Oldest).Seconds())
	}
	return s
}

// found replaces the error for a missing log by ErrNoLog.
func found(in wal.Inspection, err error) (wal.Inspection, error) {
	if errors.Is(err, fs.ErrNotExist) {
		return in, noLog(in.Dir)
	}
	return in, err
}

// noLog returns ErrNoLog with the directory.
func noLog(storage string) error {
	if abs, err := filepath.Abs(storage); err == nil {
		storage = abs
	}
	return fmt.Errorf("%w in %s: no agent has run there", ErrNoLog, storage)
}

// Inspection is the content of a log's files as counted by an inspection, with a method to print it.
type Inspection struct {
	Schema int `json:"schema"` // 1
	wal.Inspection
}

// InspectLog reads the whole log in the storage directory without changing anything, also while an agent runs. It
// reports to progress. If the log is damaged, it returns the inspection and ErrDamaged.
func InspectLog(storage string, progress wal.Progress) (Inspection, error) {
	read, err := found(wal.Inspect(storage, progress))
	if err != nil {
		return Inspection{}, err
	}
	in := Inspection{Schema: 1, Inspection: read}
	for _, s := range in.Segments {
		if s.Damaged > 0 || s.Broken > 0 {
			return in, fmt.Errorf("%w: segment %d has %d unreadable bytes", ErrDamaged, s.Number, s.Damaged)
		}
		if s.Problem != "" {
			return in, fmt.Errorf("%w: segment %d: %s", ErrDamaged, s.Number, s.Problem)
		}
	}
	if in.Problem != "" {
		return in, fmt.Errorf("%w: %s", ErrDamaged, in.Problem)
	}
	for _, t := range in.Targets {
		if t.Problem != "" {
			return in, fmt.Errorf("%w: target %s: %s", ErrDamaged, t.Name, t.Problem)
		}
	}
	return in, nil
}

// WriteText prints the inspection for people.
func (in Inspection) WriteText(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "log %s in %s, %d samples up to %s\n", in.Log, in.Dir, in.Head.Total, in.Head.Position)
	fmt.Fprint(table, "\nSEGMENT\tSIZE\tCOMMITS\tSAMPLES\tSERIES\tFROM\tTO\tNEEDED BY\tSTATE\n")
	for _, s := range in.Segments {
		state := "ok"
		if s.Damaged > 0 || s.Broken > 0 {
			state = fmt.Sprintf("%d bytes and %s unreadable", s.Damaged, counted(s.Broken, "commit"))
		}
		if s.Problem != "" {
			state += "; " + s.Problem
		}
		fmt.Fprintf(table, "%08d\t%s\t%d\t%d\t%d\t%s\t%s\t%s\t%s\n", s.Number, roughly(s.Bytes), s.Commits, s.Samples, s.Series,
			stamp(s.From), stamp(s.To), dash(strings.Join(s.NeededBy, ", ")), state)
	}
	if in.Problem != "" {
		fmt.Fprintf(table, "\n%s\n", in.Problem)
	}
	if len(in.Targets) > 0 {
		fmt.Fprint(table, "\nTARGET\tAT\tPENDING\tSIZE\tDELIVERED\tFILTERED\tDROPPED\tADDS UP\tPROBLEM\n")
	}
	for _, t := range in.Targets {
		dropped := uint64(0)
		for _, n := range t.Dropped {
			dropped += n
		}
		adds := "yes"
		if !t.Balanced {
			adds = "NO"
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%d\t%d\t%d\t%s\t%s\n", t.Name, t.Acked, t.Pending, roughly(t.PendingBytes),
			t.Delivered, t.Filtered, dropped, adds, dash(t.Problem))
	}
	return table.Flush()
}

func dash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	return t.UTC().Format(time.RFC3339)
}
