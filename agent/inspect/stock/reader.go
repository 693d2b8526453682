package stock

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/tsdb/record"
	"github.com/prometheus/prometheus/tsdb/wlog"
)

// segmentDir is the directory of the segments in a storage directory.
const segmentDir = "wal"

// Record is one record of the log. Of the fields below Type, those of its type are set; they
// are valid until the following call of [Reader.Next].
type Record struct {
	Segment int
	Offset  int64  // where the record ends in the segment's file, bytes
	Type    string // as Prometheus names it, or header, commit, family, ended; "unknown (N)" is skipped

	Header   *Header
	Commit   *Commit
	Families []Family

	Series          []record.RefSeries
	Metadata        []record.RefMetadata
	Samples         []record.RefSample
	Histograms      []record.RefHistogramSample
	FloatHistograms []record.RefFloatHistogramSample
	Exemplars       []record.RefExemplar

	raw   []byte // uncompressed
	began int64  // where the record begins in the segment's file
}

// Stop is a place where Prometheus' reader gave a segment up before its end.
type Stop struct {
	Segment int
	Offset  int64 // at most how many bytes it had read
	Err     error

	// Torn says that the file ends within a record, as it does while the agent writes there,
	// and after a kill or a power cut. It is no damage: no commit was acknowledged there.
	Torn bool
}

// Reader reads the records of a log, segment by segment. It holds one record and the label
// sets of one segment in memory. It is not safe for concurrent use.
type Reader struct {
	dir      fs.FS
	close    func() error // closes dir
	segments []segment
	headers  map[int]*Header // see header
	stops    []Stop

	open    fs.File // the segment that is being read; nil if none is
	wal     *wlog.Reader
	decoder record.Decoder
	rec     Record
	labels  map[chunks.HeadSeriesRef]labels.Labels
}

type segment struct {
	number int
	size   int64 // how much of the file belongs to the log
}

// Open opens the log in a storage directory, with the segments that it has now. An error of
// fs.ErrNotExist means that there is no log.
func Open(storage string) (*Reader, error) {
	dir, err := os.OpenRoot(filepath.Join(storage, segmentDir))
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	r, err := New(dir.FS())
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	r.close = dir.Close
	return r, nil
}

// New reads the segments that dir has now.
func New(dir fs.FS) (*Reader, error) {
	r := &Reader{dir: dir, headers: map[int]*Header{}, close: func() error { return nil }}
	if err := r.list(); err != nil {
		return nil, fmt.Errorf("list segments: %w", err)
	}
	return r, nil
}

func (r *Reader) list() error {
	entries, err := fs.ReadDir(r.dir, ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		n, err := strconv.ParseUint(e.Name(), 10, 31)
		if err != nil || e.Name() != name(int(n)) || !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // delivered and removed meanwhile
		}
		if err != nil {
			return err
		}
		r.segments = append(r.segments, segment{int(n), info.Size()})
	}
	slices.SortFunc(r.segments, func(a, b segment) int { return cmp.Compare(a.number, b.number) })
	return nil
}

// name is the file name of a segment.
func name(n int) string { return fmt.Sprintf("%08d", n) }

// Stops are the places where Prometheus' reader stopped before the end of a segment, so far.
func (r *Reader) Stops() []Stop { return r.stops }

// Labels are those that the present segment has announced for a reference; ok is false if it
// has announced none.
func (r *Reader) Labels(ref chunks.HeadSeriesRef) (ls labels.Labels, ok bool) {
	ls, ok = r.labels[ref]
	return ls, ok
}

// Next reads the next record. The error is io.EOF after the last one, or the disk's. Where
// Prometheus' reader finds damage it stops; see [Reader.Stops].
func (r *Reader) Next() (*Record, error) {
	for {
		if r.wal == nil {
			if len(r.segments) == 0 {
				return nil, io.EOF
			}
			if err := r.begin(); err != nil {
				return nil, err
			}
			continue
		}
		if !r.wal.Next() {
			if err := r.end(); err != nil {
				return nil, err
			}
			continue
		}
		r.rec = Record{Segment: r.rec.Segment, Offset: r.wal.Offset(), raw: r.wal.Record(), began: after(r.rec.Offset)}
		if err := r.decode(); err != nil {
			r.stops = append(r.stops, Stop{Segment: r.rec.Segment, Offset: r.rec.Offset, Err: err})
			continue
		}
		return &r.rec, nil
	}
}

// after is where the record begins that follows one which ends at that offset: on the next page if
// no fragment's header (7 bytes) fits the rest of this one.
func after(end int64) int64 {
	const page, header = 32 << 10, 7
	if left := page - end%page; left < header {
		end += left
	}
	return end
}

// begin opens the next segment.
func (r *Reader) begin() error {
	s := r.segments[0]
	r.segments = r.segments[1:]
	f, err := r.dir.Open(name(s.number))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // removed meanwhile
	}
	if err != nil {
		return fmt.Errorf("open segment %s: %w", name(s.number), err)
	}
	s.size = r.owned(s, r.segments)
	r.open, r.wal = f, wlog.NewReader(bufio.NewReaderSize(io.LimitReader(f, s.size), 32<<10))
	r.decoder = record.NewDecoder(labels.NewSymbolTable(), slog.New(slog.DiscardHandler))
	r.labels = map[chunks.HeadSeriesRef]labels.Labels{}
	r.rec = Record{Segment: s.number}
	return nil
}

// owned returns how many bytes of a segment belong to the log: those that the segment after it does
// not disown. later are the segments behind s.
func (r *Reader) owned(s segment, later []segment) int64 {
	if len(later) == 0 || later[0].number != s.number+1 {
		return s.size
	}
	next := r.header(later[0].number)
	if next == nil || next.PrevID == (ID{}) {
		return s.size
	}
	if own := r.header(s.number); own != nil && own.Segment != next.PrevID {
		return 0
	}
	return min(s.size, next.PrevEnd)
}

// header returns the first record of a segment, nil if that is no readable header. It reads each
// segment once.
func (r *Reader) header(number int) *Header {
	h, ok := r.headers[number]
	if !ok {
		h = r.readHeader(number)
		r.headers[number] = h
	}
	return h
}

func (r *Reader) readHeader(number int) *Header {
	f, err := r.dir.Open(name(number))
	if err != nil {
		return nil
	}
	defer f.Close()
	const first = 32 << 10 // a header is in the first page
	w := wlog.NewReader(io.LimitReader(f, first))
	if !w.Next() || len(w.Record()) == 0 || w.Record()[0] != typeHeader {
		return nil
	}
	h, err := decodeHeader(w.Record()[1:])
	if err != nil {
		return nil
	}
	return &h
}

// tornText is the text of the error that Prometheus' reader gives for a record of which the
// file has the first pages only. There is no value to compare it with.
const tornText = "last record is torn"

// end closes the open segment, and notes where Prometheus' reader stopped in it. The error is
// the disk's.
func (r *Reader) end() error {
	err := r.wal.Err()
	if corrupt, ok := errors.AsType[*wlog.CorruptionErr](err); ok {
		err = corrupt.Err // the place is said beside it
	}
	stop := Stop{Segment: r.rec.Segment, Offset: r.wal.Offset(), Err: err}
	r.wal = nil
	closed := r.open.Close()
	if disk, ok := errors.AsType[*fs.PathError](err); ok {
		return errors.Join(fmt.Errorf("read segment %s: %w", name(stop.Segment), disk), closed)
	}
	if err != nil {
		stop.Torn = errors.Is(err, io.ErrUnexpectedEOF) || err.Error() == tornText
		r.stops = append(r.stops, stop)
	}
	return closed
}

// Close closes the files.
func (r *Reader) Close() error {
	if r.wal != nil {
		return errors.Join(r.open.Close(), r.close())
	}
	return r.close()
}

// decode decodes the record that was read.
func (r *Reader) decode() (err error) {
	rec, d := &r.rec, &r.decoder
	if len(rec.raw) == 0 {
		rec.Type = "unknown (empty)"
		return nil
	}
	body := rec.raw[1:]
	switch rec.raw[0] {
	case typeHeader:
		h, err := decodeHeader(body)
		rec.Type, rec.Header = "header", &h
		return wrap("header", err)
	case typeCommit:
		c, err := decodeCommit(body)
		rec.Type, rec.Commit = "commit", &c
		return wrap("commit", err)
	case typeFamily:
		rec.Type = "family"
		rec.Families, err = decodeFamilies(body)
		return wrap("family", err)
	case typeEnded:
		rec.Type = "ended" // this reader keeps the series of the whole segment
		return nil
	}
	t := d.Type(rec.raw)
	rec.Type = t.String()
	switch t {
	case record.Series:
		if rec.Series, err = d.Series(rec.raw, nil); err == nil {
			for _, s := range rec.Series {
				r.labels[s.Ref] = s.Labels
			}
		}
	case record.Metadata:
		rec.Metadata, err = d.Metadata(rec.raw, nil)
	case record.Samples, record.SamplesV2:
		rec.Samples, err = d.Samples(rec.raw, nil)
	case record.HistogramSamples, record.CustomBucketsHistogramSamples, record.HistogramSamplesV2:
		rec.Histograms, err = d.HistogramSamples(rec.raw, nil)
	case record.FloatHistogramSamples, record.CustomBucketsFloatHistogramSamples, record.FloatHistogramSamplesV2:
		rec.FloatHistograms, err = d.FloatHistogramSamples(rec.raw, nil)
	case record.Exemplars:
		rec.Exemplars, err = d.Exemplars(rec.raw, nil)
	default:
		rec.Type = fmt.Sprintf("unknown (%d)", rec.raw[0])
	}
	return wrap(rec.Type, err)
}

func wrap(kind string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("decode %s record: %w", kind, err)
}
