package queues

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"hwsagent/agent/inspect"
	"hwsagent/internal/text"
	"hwsagent/remotewrite"
	"hwsagent/remotewrite/deadletter"
	"hwsagent/remotewrite/reply"
	"hwsagent/wal"
)

// Rejections holds the dead letters of a target: the samples that its receiver refused, newest last.
type Rejections struct {
	Schema  int                  `json:"schema"` // 1
	Target  string               `json:"target"`
	Kept    int                  `json:"kept"`    // number of letters in the store
	Letters []remotewrite.Letter `json:"letters"` // the newest of them, up to the requested limit
}

// Rejected reads the dead letters of a target in the storage directory, also while an agent runs: the newest limit
// letters, or all if limit is not positive.
func Rejected(storage, target string, limit int) (Rejections, error) {
	r := Rejections{Schema: 1, Target: target, Letters: []remotewrite.Letter{}}
	dir := deadletter.Dir(storage, target)
	if _, err := os.Stat(dir); err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			return r, fmt.Errorf("read dead letters: %w", err)
		}
		in, err := inspect.Glance(storage)
		if err != nil {
			return r, err
		}
		if !slices.ContainsFunc(in.Targets, func(t wal.TargetInspection) bool { return t.Name == target }) {
			return r, (Store{Storage: storage}).Explain(target, wal.ErrNoTarget)
		}
	}
	letters, err := deadletter.List(dir)
	if err != nil {
		return r, err
	}
	r.Kept = len(letters)
	if limit > 0 && len(letters) > limit {
		letters = letters[len(letters)-limit:]
	}
	r.Letters = append(r.Letters, letters...)
	return r, nil
}

// WriteText prints the letters for people, grouped by answer.
func (r Rejections) WriteText(w io.Writer) error {
	var b strings.Builder
	if r.Kept == 0 {
		fmt.Fprintf(&b, "%s has no dead letters\n", r.Target)
	}
	said := ""
	for _, l := range r.Letters {
		head := fmt.Sprintf("%s %s, %d: %s", l.Time.UTC().Format(time.RFC3339), l.Reason, l.Status, text.Printable(l.Text))
		if key := fmt.Sprint(l.Reason, l.Status, l.Text); key != said {
			said = key
			if why := reply.Of(l.Text); why != reply.Unknown {
				head += " (" + why.Text() + ")"
			}
			fmt.Fprintln(&b, head)
		}
		many := ""
		if l.Samples > 1 {
			many = fmt.Sprintf(", and %d others of its request", l.Samples-1)
		}
		fmt.Fprintf(&b, "    %s %s @ %s%s\n", text.Printable(l.Series), text.Printable(l.Value), time.UnixMilli(l.Timestamp).UTC().Format("2006-01-02T15:04:05.000Z"), many)
	}
	if n := r.Kept - len(r.Letters); n > 0 {
		fmt.Fprintf(&b, "… and %d older (--limit 0 shows all)\n", n)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
