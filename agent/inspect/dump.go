package inspect

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"strconv"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/tsdb/record"

	"hwsagent/agent/inspect/stock"
	"hwsagent/agent/selector"
)

// DumpOptions select which parts of a log to print.
type DumpOptions struct {
	Storage string // the storage directory
	Series  string // a selector: only data of matching series; "" for all

	// Only samples and exemplars from From on and before To; zero for no bound.
	From, To time.Time

	JSON bool // one JSON value, with a record on each line, in place of text
}

// ErrSelector means that the selector of a dump is invalid.
var ErrSelector = errors.New("wrong usage")

// Dump prints the records of a log as Prometheus' own reader finds them, in the order of the files. It changes
// nothing, and works while an agent runs. It keeps one record and the label sets of one segment in memory. ErrSelector
// means an invalid selector; ErrDamaged means that Prometheus' reader stopped early, and Dump prints where.
func Dump(ctx context.Context, o DumpOptions, out io.Writer) (err error) {
	matchers, err := selector.Parse(o.Series)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSelector, err)
	}
	r, err := stock.Open(o.Storage)
	if errors.Is(err, fs.ErrNotExist) {
		return NoLog(o.Storage)
	}
	if err != nil {
		return err
	}
	buffered := bufio.NewWriter(out)
	d := dump{reader: r, matchers: matchers, from: math.MinInt64, to: math.MaxInt64, out: buffered, json: o.JSON}
	if !o.From.IsZero() {
		d.from = o.From.UnixMilli()
	}
	if !o.To.IsZero() {
		d.to = o.To.UnixMilli()
	}
	d.timed = !o.From.IsZero() || !o.To.IsZero()
	err = d.run(ctx)
	return errors.Join(err, buffered.Flush(), r.Close())
}

// dump prints one log.
type dump struct {
	reader   *stock.Reader
	matchers []*labels.Matcher
	from, to int64 // milliseconds; to is not included
	timed    bool  // from or to is set
	out      *bufio.Writer
	json     bool
	lines    int
}

// dumped is one line of a dump. Fields that the type does not have are left out of JSON.
type dumped struct {
	Segment int    `json:"segment"`
	Offset  int64  `json:"offset"` // where the record ends
	Type    string `json:"type"`

	Ref     uint64         `json:"ref,omitempty"`
	Series  *labels.Labels `json:"series,omitempty"`
	Time    string         `json:"time,omitempty"`
	Start   string         `json:"start,omitempty"` // start timestamp
	Value   string         `json:"value,omitempty"` // as Prometheus writes it; stale: the marker of an end
	Labels  *labels.Labels `json:"labels,omitempty"`
	Text    string         `json:"text,omitempty"` // of a histogram, in Prometheus' notation
	Kind    string         `json:"kind,omitempty"` // set for metadata, as the fields below
	Unit    string         `json:"unit,omitempty"`
	Help    string         `json:"help,omitempty"`
	Family  string         `json:"family,omitempty"`
	Log     string         `json:"log,omitempty"`
	ID      string         `json:"id,omitempty"` // of the segment
	Commit  *uint64        `json:"commit,omitempty"`
	Records *uint64        `json:"records,omitempty"`
	Samples *uint64        `json:"samples,omitempty"`
	Total   *uint64        `json:"total,omitempty"`
}

// run prints all records.
func (d *dump) run(ctx context.Context) error {
	if d.json {
		fmt.Fprint(d.out, "{\"schema\": 1, \"records\": [")
	}
	err := d.records(ctx)
	var damaged error
	stops := logStops(d.reader.Stops())
	for _, s := range stops {
		if !s.Torn && damaged == nil {
			damaged = fmt.Errorf("%w: Prometheus' reader stopped in segment %d at %d: %s", ErrDamaged, s.Segment, s.Offset, s.Error)
		}
		if !d.json {
			fmt.Fprintln(d.out, s)
		}
	}
	if d.json {
		text, failed := json.Marshal(stops)
		if e := cmp.Or(err, failed); e != nil {
			fmt.Fprintf(d.out, "\n], \"error\": %q, \"stopped\": %s}\n", e.Error(), text)
		} else {
			fmt.Fprintf(d.out, "\n], \"stopped\": %s}\n", text)
		}
	}
	return cmp.Or(err, damaged)
}

func (d *dump) records(ctx context.Context) error {
	for {
		rec, err := d.reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := d.record(rec); err != nil {
			return err
		}
	}
}

// record prints the selected parts of one record.
func (d *dump) record(rec *stock.Record) error {
	line := dumped{Segment: rec.Segment, Offset: rec.Offset, Type: rec.Type}
	if len(d.matchers) == 0 && !d.timed {
		if h := rec.Header; h != nil {
			line.Log, line.ID, line.Time = h.Log.String(), h.Segment.String(), stampMillis(h.CreatedAt)
			line.Commit, line.Total = &h.Commit, &h.Total
			return d.print(line)
		}
		if c := rec.Commit; c != nil {
			line.Commit, line.Records, line.Samples, line.Total = &c.Number, &c.Records, &c.Samples, &c.Total
			return d.print(line)
		}
	}
	if !d.timed {
		if err := d.announcements(rec, line); err != nil {
			return err
		}
	}
	return d.samples(rec, line)
}

// announcements prints what a record declares about series.
func (d *dump) announcements(rec *stock.Record, line dumped) error {
	for _, s := range rec.Series {
		if at, ok := d.of(line, s.Ref); ok {
			if err := d.print(at); err != nil {
				return err
			}
		}
	}
	for _, m := range rec.Metadata {
		if at, ok := d.of(line, m.Ref); ok {
			at.Kind, at.Unit, at.Help = string(record.ToMetricType(m.Type)), m.Unit, m.Help
			if err := d.print(at); err != nil {
				return err
			}
		}
	}
	for _, f := range rec.Families {
		if at, ok := d.of(line, chunks.HeadSeriesRef(f.Ref)); ok {
			at.Family = f.Name
			if err := d.print(at); err != nil {
				return err
			}
		}
	}
	return nil
}

// samples prints the samples, histograms and exemplars of a record.
func (d *dump) samples(rec *stock.Record, line dumped) error {
	for _, s := range rec.Samples {
		if at, ok := d.at(line, s.Ref, s.ST, s.T); ok {
			at.Value = valueText(s.V)
			if err := d.print(at); err != nil {
				return err
			}
		}
	}
	for _, h := range rec.Histograms {
		if at, ok := d.at(line, h.Ref, h.ST, h.T); ok {
			at.Text = h.H.String()
			if err := d.print(at); err != nil {
				return err
			}
		}
	}
	for _, h := range rec.FloatHistograms {
		if at, ok := d.at(line, h.Ref, h.ST, h.T); ok {
			at.Text = h.FH.String()
			if err := d.print(at); err != nil {
				return err
			}
		}
	}
	for _, x := range rec.Exemplars {
		if at, ok := d.at(line, x.Ref, 0, x.T); ok {
			at.Value, at.Labels = valueText(x.V), &x.Labels
			if err := d.print(at); err != nil {
				return err
			}
		}
	}
	return nil
}

// of returns the line with its series; false if the series is not selected.
func (d *dump) of(line dumped, ref chunks.HeadSeriesRef) (dumped, bool) {
	ls, known := d.reader.Labels(ref)
	for _, m := range d.matchers {
		if !known || !m.Matches(ls.Get(m.Name)) {
			return line, false
		}
	}
	line.Ref = uint64(ref)
	if known {
		line.Series = &ls
	}
	return line, true
}

// at returns the line with its series and times; false if they are not selected.
func (d *dump) at(line dumped, ref chunks.HeadSeriesRef, st, t int64) (dumped, bool) {
	if t < d.from || t >= d.to {
		return line, false
	}
	line, ok := d.of(line, ref)
	line.Time = stampMillis(t)
	if st != 0 {
		line.Start = stampMillis(st)
	}
	return line, ok
}

// print prints one line.
func (d *dump) print(line dumped) error {
	if !d.json {
		_, err := fmt.Fprintln(d.out, line)
		return err
	}
	text, err := json.Marshal(line)
	if err != nil {
		return fmt.Errorf("encode record at %08d:%d: %w", line.Segment, line.Offset, err)
	}
	separator := ",\n"
	if d.lines == 0 {
		separator = "\n"
	}
	d.lines++
	_, err = d.out.WriteString(separator + string(text))
	return err
}

// String is the line for people.
func (l dumped) String() string {
	text := fmt.Sprintf("%08d:%d %s", l.Segment, l.Offset, l.Type)
	switch {
	case l.Records != nil:
		return text + fmt.Sprintf(" %d: %d records, %d samples, %d in all", *l.Commit, *l.Records, *l.Samples, *l.Total)
	case l.Log != "":
		return text + fmt.Sprintf(" log %s segment %s created %s, after commit %d, %d samples", l.Log, l.ID, l.Time, *l.Commit, *l.Total)
	case l.Ref == 0 && l.Series == nil && l.Time == "":
		return text
	}
	if l.Series != nil {
		text += " " + l.Series.String()
	} else {
		text += fmt.Sprintf(" (reference %d, which was not announced before)", l.Ref)
	}
	if l.Time != "" {
		text += " " + l.Time
	}
	if l.Start != "" {
		text += " since " + l.Start
	}
	if l.Value != "" || l.Text != "" {
		text += " " + cmp.Or(l.Value, l.Text)
	}
	if l.Labels != nil {
		text += " " + l.Labels.String()
	}
	if l.Kind != "" {
		text += fmt.Sprintf(" %s unit=%q help=%q", l.Kind, l.Unit, l.Help)
	}
	if l.Family != "" {
		text += " of family " + l.Family
	}
	return text
}

// Stop is a place where Prometheus' reader gave up on a segment.
type Stop struct {
	Segment int    `json:"segment"`
	Offset  int64  `json:"offset"` // an upper bound, in bytes from the start of the segment
	Error   string `json:"error"`
	Torn    bool   `json:"torn"` // the file ends within a record, as while an agent writes; not damage
}

// String describes the place in words.
func (s Stop) String() string {
	if s.Torn {
		return fmt.Sprintf("%08d:%d ends within a record, as it may while an agent writes or after a kill: %s", s.Segment, s.Offset, s.Error)
	}
	return fmt.Sprintf("%08d:%d is damaged, and Prometheus' reader skips the rest of this segment: %s", s.Segment, s.Offset, s.Error)
}

func logStops(stops []stock.Stop) []Stop {
	all := []Stop{}
	for _, s := range stops {
		all = append(all, Stop{Segment: s.Segment, Offset: s.Offset, Error: s.Err.Error(), Torn: s.Torn})
	}
	return all
}

func stampMillis(t int64) string { return time.UnixMilli(t).UTC().Format("2006-01-02T15:04:05.000Z") }

// valueText formats a sample's value as Prometheus does.
func valueText(v float64) string {
	if value.IsStaleNaN(v) {
		return "stale"
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}
