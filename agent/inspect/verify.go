package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"

	"hwsagent/agent/inspect/stock"
	"hwsagent/wal"
)

// ErrDiffer means that Prometheus' reader and hwsagent's find different contents in a log.
var ErrDiffer = errors.New("the two readings of the log differ")

// Verification is the outcome of comparing the two readings of a log.
type Verification struct {
	Schema     int         `json:"schema"` // 1
	Agree      bool        `json:"agree"`
	Commits    uint64      `json:"commits"` // equal in both, as are the counts below
	Samples    uint64      `json:"samples"`
	Histograms uint64      `json:"histograms"`
	Exemplars  uint64      `json:"exemplars"`
	Missing    uint64      `json:"missing"` // acknowledged samples that can no longer be read
	Stopped    []Stop      `json:"stopped"` // where Prometheus' reader stopped before the end of a segment
	Difference *Difference `json:"difference,omitempty"`
}

// Difference is the first place where the two readings differ.
type Difference struct {
	Segment    int    `json:"segment"`
	Offset     int64  `json:"offset"`     // end of the commit
	Hwsagent   string `json:"hwsagent"`   // as hwsagent's reader finds it
	Prometheus string `json:"prometheus"` // what Prometheus' reader has
}

// verifyTries bounds how often a difference is checked again because the agent removed or shortened segments meanwhile.
const verifyTries = 3

// Verify reads the log in a storage directory twice, with hwsagent's reader and with Prometheus', and compares
// commit by commit and sample by sample. It changes nothing, and works while an agent runs: it ignores commits written
// meanwhile. It keeps one commit and the series of a segment in memory, twice. The error is ErrDiffer, with the
// difference, or says why the log cannot be read.
func Verify(ctx context.Context, storage string, progress wal.Progress) (v Verification, err error) {
	for range verifyTries {
		before := segmentSizes(storage)
		if v, err = verify(ctx, storage, progress); !errors.Is(err, ErrDiffer) || !shrunk(before, segmentSizes(storage)) {
			break
		}
	}
	return v, err
}

// segmentSizes returns the sizes of a log's files by name.
func segmentSizes(storage string) map[string]int64 {
	sizes := map[string]int64{}
	entries, err := os.ReadDir(filepath.Join(storage, "wal"))
	if err != nil {
		return sizes // reading the log then fails with the same error
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			sizes[e.Name()] = info.Size()
		}
	}
	return sizes
}

// shrunk reports whether a file was removed or became shorter.
func shrunk(before, after map[string]int64) bool {
	for name, size := range before {
		if now, ok := after[name]; !ok || now < size {
			return true
		}
	}
	return false
}

func verify(ctx context.Context, storage string, progress wal.Progress) (v Verification, err error) {
	v = Verification{Schema: 1, Stopped: []Stop{}}
	ours, err := wal.OpenArchive(storage, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return Verification{}, NoLog(storage)
	}
	if err != nil {
		return Verification{}, err
	}
	defer func() { err = errors.Join(err, ours.Close()) }()
	reader, err := stock.Open(storage) // opened later, so that it has everything that the other has
	if err != nil {
		return Verification{}, err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	head := ours.Head()
	theirs := stock.Commits{Reader: reader, Log: stock.ID(head.Log)}
	for {
		if err := ctx.Err(); err != nil {
			return v, err
		}
		if progress != nil {
			progress(ours.Progress())
		}
		e, err := ours.Next()
		if err != nil && !errors.Is(err, io.EOF) {
			return v, err
		}
		s, err := theirs.Next()
		if err != nil && !errors.Is(err, io.EOF) {
			return v, err
		}
		if s != nil && s.Commit.Number > head.Commit {
			s = nil // written since
		}
		if e == nil && s == nil {
			break
		}
		if v.Difference = difference(e, s); v.Difference != nil {
			break
		}
		v.count(e)
	}
	v.Stopped, v.Agree = logStops(reader.Stops()), v.Difference == nil
	if v.Agree {
		return v, nil
	}
	if n := len(v.Stopped); n > 0 {
		v.Difference.Prometheus += "; it stopped before: " + v.Stopped[n-1].String()
	}
	d := v.Difference
	return v, fmt.Errorf("%w at %08d:%d: hwsagent has %s; Prometheus has %s", ErrDiffer, d.Segment, d.Offset, d.Hwsagent, d.Prometheus)
}

// count adds a commit that is equal in both readings.
func (v *Verification) count(e *wal.Entry) {
	v.Commits++
	v.Samples += uint64(len(e.Samples))
	v.Histograms += uint64(len(e.Histograms))
	v.Exemplars += uint64(len(e.Exemplars))
	v.Missing += e.Missing.Lost()
}

// difference returns the difference between a commit in our reading and in Prometheus'; nil if they are equal. One of
// them may be nil, for the end of the log.
func difference(e *wal.Entry, s *stock.Entry) *Difference {
	ours, theirs := "the end of the log", "the end of the log"
	d := Difference{Segment: math.MaxInt}
	if e != nil {
		ours = fmt.Sprintf("commit %d at %s with %d samples, %d histograms and %d exemplars",
			e.End.Commit, e.End.Position, len(e.Samples), len(e.Histograms), len(e.Exemplars))
		d.Segment, d.Offset = e.End.Segment, e.End.Offset
	}
	if s != nil {
		theirs = s.String()
		if s.Segment < d.Segment || s.Segment == d.Segment && s.Offset < d.Offset {
			d.Segment, d.Offset = s.Segment, s.Offset
		}
	}
	d.Hwsagent, d.Prometheus = ours, theirs
	switch {
	case e == nil || s == nil:
		return &d
	case e.End.Commit != s.Commit.Number || // the place may differ: commits that were moved after an error appear twice
		len(e.Samples) != len(s.Samples) || len(e.Histograms) != len(s.Histograms) || len(e.Exemplars) != len(s.Exemplars):
		return &d
	case e.End.Total != s.Commit.Total:
		d.Hwsagent, d.Prometheus = fmt.Sprintf("%s, %d in all", ours, e.End.Total), fmt.Sprintf("%s, %d in all", theirs, s.Commit.Total)
		return &d
	}
	ours, theirs, differ := firstDifference(e, s)
	if !differ {
		return nil
	}
	d.Hwsagent, d.Prometheus = d.Hwsagent+", "+ours, d.Prometheus+", "+theirs
	return &d
}

// firstDifference returns the first sample, histogram or exemplar that differs between two commits with equal counts.
func firstDifference(e *wal.Entry, s *stock.Entry) (ours, theirs string, differ bool) {
	for i := range e.Samples {
		a, b := &e.Samples[i], &s.Samples[i]
		if a.ST != b.ST || a.T != b.T || !sameValue(a.V, b.V) || !sameSeries(a.Series, b.Series) {
			return itemText("sample", i, a.ST, a.T, bits(a.V), ourSeries(a.Series)), itemText("sample", i, b.ST, b.T, bits(b.V), stockSeries(b.Series)), true
		}
	}
	for i := range e.Histograms {
		a, b := &e.Histograms[i], &s.Histograms[i]
		if a.ST != b.ST || a.T != b.T || !sameHistogram(a, b) || !sameSeries(a.Series, b.Series) {
			return itemText("histogram", i, a.ST, a.T, histogramText(a.H, a.FH), ourSeries(a.Series)),
				itemText("histogram", i, b.ST, b.T, histogramText(b.H, b.FH), stockSeries(b.Series)), true
		}
	}
	for i := range e.Exemplars {
		a, b := &e.Exemplars[i], &s.Exemplars[i]
		if a.T != b.T || !sameValue(a.V, b.V) || !labels.Equal(a.Labels, b.Labels) || !sameSeries(a.Series, b.Series) {
			return itemText("exemplar", i, 0, a.T, bits(a.V)+" "+a.Labels.String(), ourSeries(a.Series)),
				itemText("exemplar", i, 0, b.T, bits(b.V)+" "+b.Labels.String(), stockSeries(b.Series)), true
		}
	}
	return "", "", false
}

func itemText(kind string, i int, start, t int64, value, series string) string {
	return fmt.Sprintf("%s %d: %s start %d time %d value %s", kind, i, series, start, t, value)
}

// bits formats a value with its bits, which distinguish different NaNs.
func bits(v float64) string { return fmt.Sprintf("%s (%016x)", valueText(v), math.Float64bits(v)) }

func sameValue(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }

// sameSeries compares labels, and the metadata that the segment of b announced; a may have more, from earlier segments.
func sameSeries(a *wal.Series, b stock.Series) bool {
	if same := labels.Equal(a.Labels(), b.Labels); !same || b.About == nil {
		return same
	}
	meta, about := a.Meta(), b.About
	if about.Type != "" && (string(meta.Type) != about.Type || meta.Unit != about.Unit || meta.Help != about.Help) {
		return false
	}
	return about.Family == "" || about.Family == a.Family()
}

func ourSeries(s *wal.Series) string {
	return seriesText(s.Labels(), string(s.Meta().Type), s.Meta().Unit, s.Meta().Help, s.Family())
}

func stockSeries(s stock.Series) string {
	if s.About == nil {
		return s.Labels.String()
	}
	return seriesText(s.Labels, s.About.Type, s.About.Unit, s.About.Help, s.About.Family)
}

func seriesText(ls labels.Labels, kind, unit, help, family string) string {
	return fmt.Sprintf("%s (%s, unit %q, help %q, family %q)", ls, kind, unit, help, family)
}

func sameHistogram(a *wal.Histogram, b *stock.Histogram) bool {
	switch {
	case a.H != nil && b.H != nil:
		return a.H.Equals(b.H) && a.H.CounterResetHint == b.H.CounterResetHint
	case a.FH != nil && b.FH != nil:
		return a.FH.Equals(b.FH) && a.FH.CounterResetHint == b.FH.CounterResetHint
	}
	return false
}

func histogramText(h *histogram.Histogram, fh *histogram.FloatHistogram) string {
	if h != nil {
		return "of integers " + h.String()
	}
	return "of floats " + fh.String()
}

// WriteText prints the verification for people.
func (v Verification) WriteText(w io.Writer) error {
	verdict := "both readings agree"
	if !v.Agree {
		verdict = "the readings differ, after these that agree"
	}
	fmt.Fprintf(w, "%s: %d commits with %d samples, %d histograms and %d exemplars\n", verdict, v.Commits, v.Samples, v.Histograms, v.Exemplars)
	if v.Missing > 0 {
		fmt.Fprintf(w, "%d acknowledged samples can no longer be read by either reader\n", v.Missing)
	}
	for _, s := range v.Stopped {
		fmt.Fprintln(w, s)
	}
	if d := v.Difference; d != nil {
		_, err := fmt.Fprintf(w, "first difference at %08d:%d\n  hwsagent:   %s\n  Prometheus: %s\n", d.Segment, d.Offset, d.Hwsagent, d.Prometheus)
		return err
	}
	return nil
}
