package scrape

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"

	"hwsagent/internal/exposition"
)

// maxAhead is how far a sample's time may be ahead of the agent's clock, as in Prometheus.
const maxAhead = 10 * time.Minute

var (
	errSampleLimit = errors.New("sample limit exceeded")
	errNoName      = errors.New("missing metric name (__name__ label)")
)

// reading configures how the pages of a target are read. It is immutable.
type reading struct {
	parser      textparse.ParserOptions
	honorLabels bool
	honorTimes  bool
	trackTimed  bool // mark also series with timestamps as stale
	startTimes  bool
	rules       []*relabel.Config
	names       model.ValidationScheme
	limits      limits
}

func newReading(cfg *settings, t *target, startTimes bool) reading {
	return reading{
		parser: textparse.ParserOptions{
			IgnoreNativeHistograms:                  !t.flag(nativeLabel, cfg.native()),
			ConvertClassicHistogramsToNHCB:          t.flag(convertLabel, cfg.convert()),
			KeepClassicOnClassicAndNativeHistograms: t.flag(classicLabel, cfg.classic()),
			OpenMetricsSkipSTSeries:                 startTimes,
			FallbackContentType:                     cfg.ScrapeFallbackProtocol.mediaType(),
		},
		honorLabels: cfg.HonorLabels, honorTimes: cfg.HonorTimestamps, trackTimed: cfg.TrackTimestampsStaleness,
		startTimes: startTimes, rules: cfg.MetricRelabelConfigs, names: cfg.MetricNameValidationScheme,
		limits: newLimits(cfg),
	}
}

// pass is one reading of a page.
type pass struct {
	reading
	ctx     context.Context // ends a pass over a large page when the agent stops
	parser  exposition.Known
	target  *target
	cache   *cache
	to      *appender
	metrics *metrics
	builder *labels.Builder

	t, latest int64 // of samples without a time; the latest allowed time
	taken     int   // samples that count towards sample_limit
	about     *family
	exemplars []exemplar.Exemplar
	exemplar  exemplar.Exemplar // filled by the parser; a field, since a variable would escape to the heap
	outcome   outcome           // its counts

	// An exceeded limit fails the scrape once the whole page has been counted.
	sampleLimit, bucketLimit error

	repeated, old, ahead int // samples refused for their time
}

// page reads a page and appends its samples, and the stale markers of series that it no longer
// shows. After an error the batch must be dropped, but the counts are valid.
func (p *pass) page(body []byte, contentType string) error {
	parser, err := exposition.New(body, contentType, nil, p.reading.parser)
	if parser == nil {
		return err
	}
	p.parser = parser
	err = p.entries()
	p.metrics.count(p)
	switch {
	case err != nil:
	case p.sampleLimit != nil:
		err = p.sampleLimit
	case p.bucketLimit != nil:
		err = p.bucketLimit
	}
	if err != nil {
		return err
	}
	if err := p.cache.markEnded(p.to, p.t); err != nil {
		return err
	}
	p.cache.end(true)
	return nil
}

// nothing takes the place of page when a scrape failed: all series end.
func (p *pass) nothing() error {
	err := p.cache.markEnded(p.to, p.t)
	if p.cache.end(false) {
		p.metrics.flushed.Inc()
	}
	return err
}

func (p *pass) entries() error {
	for n := 0; ; n++ {
		if n%1024 == 0 && p.ctx.Err() != nil {
			return p.ctx.Err()
		}
		if took, err := p.expected(); err != nil {
			return err
		} else if took {
			continue
		}
		entry, err := p.parser.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch entry {
		case textparse.EntryType:
			name, kind := p.parser.Type()
			if p.about = p.cache.family(name); p.about.meta.Type != kind {
				p.about.meta.Type, p.about.number = kind, p.cache.number()
			}
		case textparse.EntryHelp:
			name, help := p.parser.Help()
			if p.about = p.cache.family(name); p.about.meta.Help != string(help) {
				p.about.meta.Help = string(help)
			}
		case textparse.EntryUnit:
			name, unit := p.parser.Unit()
			if p.about = p.cache.family(name); p.about.meta.Unit != string(unit) {
				p.about.meta.Unit = string(unit)
			}
		case textparse.EntrySeries:
			text, at, v := p.parser.Series()
			err = p.sample(text, at, point{v: v})
		case textparse.EntryHistogram:
			text, at, h, fh := p.parser.Histogram()
			if h == nil && fh == nil {
				return fmt.Errorf("the parser gave no value for the histogram %.100q: this is a bug", text)
			}
			err = p.sample(text, at, point{h: h, fh: fh})
		}
		if err != nil {
			return err
		}
	}
}

// point is the value of a sample: a number or one of the two kinds of native histograms.
type point struct {
	v  float64
	h  *histogram.Histogram
	fh *histogram.FloatHistogram
}

// expected takes the next line if it shows the series that followed the previous one in the last scrape. It
// reports whether it did.
func (p *pass) expected() (took bool, err error) {
	s := p.cache.guess()
	if s == nil || !s.is(plain) {
		return false, nil
	}
	at, v, took := p.parser.Take(s.size(), s.digest, p.cache.digest)
	if !took {
		return false, nil
	}
	p.cache.at++
	p.outcome.scraped++
	return true, p.again(s, at, point{v: v})
}

// sample processes one sample. Its errors end the scrape.
func (p *pass) sample(text []byte, at *int64, v point) error {
	p.outcome.scraped++
	if len(text) > maxSeriesBytes {
		return tooLongError{len(text), maxSeriesBytes}
	}
	if s := p.cache.find(text); s != nil {
		s.set(plain, s.is(plain) || p.parser.Takes())
		return p.again(s, at, v)
	}
	ls, err := p.labels()
	if err != nil {
		return err
	}
	made := p.cache.seriesOf(text)
	made.set(plain, p.parser.Takes())
	if ls.IsEmpty() {
		made.set(dropped, true)
		p.cache.add(made)
		return nil
	}
	return p.take(&made, ls, at, v, false)
}

// again processes a sample of the series of the current line, which is in the cache.
func (p *pass) again(s *series, at *int64, v point) error {
	repeated := !p.cache.show(s)
	if s.is(dropped) {
		return nil
	}
	return p.take(s, labels.EmptyLabels(), at, v, repeated)
}

// take appends a sample of a series. ls are the labels of a series that the cache lacks, empty for others. repeated means that
// the page had a sample of it before.
func (p *pass) take(s *series, ls labels.Labels, at *int64, v point, repeated bool) error {
	timed := at != nil && p.honorTimes
	t := p.t
	if timed {
		t = *at
	}
	var err error
	if repeated && !timed {
		err = storage.ErrDuplicateSampleForTimestamp
	} else {
		p.belong(s, ls)
		err = p.put(s, ls, t, v)
	}
	took, err := p.judge(err)
	if err != nil {
		return err
	}
	if took && s.ref == 0 {
		p.outcome.kept++
		return nil // the input is at its series limit: skipped series must not take memory either
	}
	if took && !ls.IsEmpty() {
		s = p.cache.add(*s)
		if p.sampleLimit == nil && p.bucketLimit == nil {
			p.outcome.added++
		}
	}
	if took && (!timed || p.trackTimed) {
		p.cache.track(s)
	}
	p.outcome.kept++
	return nil
}

// labels builds the labels of the current line. They are empty if metric_relabel_configs drop the series.
func (p *pass) labels() (ls labels.Labels, err error) {
	var shown labels.Labels
	p.parser.Labels(&shown)
	p.builder.Reset(shown)
	withTarget(p.builder, shown, p.target.public, p.honorLabels)
	keep, err := relabelled(p.builder, p.rules)
	if err != nil || !keep {
		return ls, err
	}
	ls = p.builder.Labels()
	switch {
	case ls.IsEmpty():
		return ls, nil
	case !ls.Has(model.MetricNameLabel):
		return ls, errNoName
	case !ls.IsValid(p.names):
		return ls, fmt.Errorf("invalid metric name or label names: %s", ls.String())
	}
	if err := p.limits.labels.check(ls); err != nil {
		p.metrics.labelLimits.Inc()
		return ls, err
	}
	return ls, nil
}

// belong ends the family of the lines before if the series is not of it: then the next one is not, either. The cache remembers
// the answer for the latest family of each series, because it has no names.
func (p *pass) belong(s *series, ls labels.Labels) {
	if p.about == nil {
		return
	}
	if s.family != p.about.number {
		if ls.IsEmpty() {
			ls, _ = p.labels() // without an error, as when it was new
		}
		s.family = p.about.number
		s.set(inFamily, p.about.has(ls.Get(model.MetricNameLabel)))
	}
	if !s.is(inFamily) {
		p.about = nil
	}
}

// put appends a sample of a series. ls may be empty if the log knows the series.
func (p *pass) put(s *series, ls labels.Labels, t int64, v point) error {
	o := storage.AOptions{Exemplars: p.readExemplars(t, v)}
	var st int64
	if p.startTimes {
		st = p.parser.StartTimestamp()
	}
	if p.about != nil {
		o.MetricFamilyName, o.Metadata = p.about.name, p.about.meta
	}
	if err := p.limits.fit(v); err != nil {
		return err
	}
	if p.limits.samples > 0 && (s.ref == 0 || !value.IsStaleNaN(v.v)) {
		if p.taken++; p.taken > p.limits.samples {
			return errSampleLimit
		}
	}
	if t > p.latest {
		return storage.ErrOutOfBounds
	}
	ref, err := p.to.Append(s.ref, ls, st, t, v.v, v.h, v.fh, o)
	if ls.IsEmpty() && errors.Is(err, storage.ErrNotFound) {
		if ls, err = p.labels(); err != nil {
			return err
		}
		ref, err = p.to.Append(s.ref, ls, st, t, v.v, v.h, v.fh, o)
	}
	if ref != 0 && (err == nil || aboutExemplars(err)) {
		s.ref = ref
		p.to.bytes += s.size() // the log may write the labels again
	}
	return err
}

// aboutExemplars reports whether err concerns only the exemplars of a sample.
func aboutExemplars(err error) bool { return errors.Is(err, &storage.AppendPartialError{}) }

// readExemplars returns the exemplars of the current sample. They are valid until the next
// call.
func (p *pass) readExemplars(t int64, v point) []exemplar.Exemplar {
	all := p.exemplars[:0]
	for p.parser.Exemplar(&p.exemplar) {
		e := p.exemplar
		p.exemplar = exemplar.Exemplar{}
		if !e.HasTs {
			if v.h != nil || v.fh != nil {
				continue // exemplars of a native histogram must have a time
			}
			e.Ts = t
		}
		all = append(all, e)
	}
	p.exemplars = all
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, exemplar.Compare)
	return all
}

// judge classifies an error of a sample: either only the sample is refused, or the scrape
// fails.
func (p *pass) judge(err error) (took bool, fatal error) {
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, errSampleLimit):
		p.sampleLimit = err
	case errors.Is(err, errBucketLimit):
		p.bucketLimit = err
	case errors.Is(err, storage.ErrDuplicateSampleForTimestamp):
		p.repeated++
	case errors.Is(err, storage.ErrOutOfOrderSample):
		p.old++
	case errors.Is(err, storage.ErrOutOfBounds):
		p.ahead++
	case aboutExemplars(err):
		return true, nil
	default:
		return false, err
	}
	return false, nil
}
