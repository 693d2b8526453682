// Package inspect reads the log in a storage directory for people, beside a running agent or without one, and changes nothing. [Log]
// shows what the log has, [Dump] prints its records with Prometheus' reader, and [Verify] compares that reader with the agent's.
package inspect

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"hwsagent/agent/status"
	"hwsagent/internal/text"
	"hwsagent/wal"
)

// ErrDamaged means that the log has unreadable parts. They are skipped and counted; everything else is delivered.
var ErrDamaged = errors.New("the log is damaged")

// ErrNoLog means that no agent has ever run on the storage directory.
var ErrNoLog = errors.New("there is no log")

// Glance returns the summary of the log in the storage directory, see [wal.Glance]. Without a log the error is ErrNoLog.
func Glance(storage string) (wal.Inspection, error) { return found(wal.Glance(storage)) }

// found replaces the error for a missing log by ErrNoLog.
func found(in wal.Inspection, err error) (wal.Inspection, error) {
	if errors.Is(err, fs.ErrNotExist) {
		return in, NoLog(in.Dir)
	}
	return in, err
}

// NoLog returns ErrNoLog with the directory.
func NoLog(storage string) error {
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

// Log reads the whole log in the storage directory without changing anything, also while an agent runs. It
// reports to progress. If the log is damaged, it returns the inspection and ErrDamaged.
func Log(storage string, progress wal.Progress) (Inspection, error) {
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
			state = fmt.Sprintf("%d bytes and %s unreadable", s.Damaged, text.Counted(s.Broken, "commit"))
		}
		if s.Problem != "" {
			state += "; " + s.Problem
		}
		fmt.Fprintf(table, "%08d\t%s\t%d\t%d\t%d\t%s\t%s\t%s\t%s\n", s.Number, status.Size(s.Bytes), s.Commits, s.Samples, s.Series,
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
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%d\t%d\t%d\t%s\t%s\n", t.Name, t.Acked, t.Pending, status.Size(t.PendingBytes),
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
