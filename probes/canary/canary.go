// Package canary is a probe that counts: every round, each of its series has the next
// number as its value. The numbers at a receiver show whether a sample was lost, came
// twice or came out of order.
//
// With a journal, the probe also writes down, outside the log, which numbers it tried
// and which of them the log acknowledged. It tries each number once, over all restarts,
// so the journal and the receiver's samples can be compared number by number.
package canary

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/bits"
	"os"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"

	"hwsagent/probes"
)

// Name is the metric's name. Its series differ by the label "series": 0, 1, 2, ….
const Name = "hwsagent_canary"

// The metrics that [Config.Native] adds, with the same series.
const (
	HistogramName      = "hwsagent_canary_histogram"       // of integers
	FloatHistogramName = "hwsagent_canary_float_histogram" // of floats
)

// maxSeries bounds Config.Series.
const maxSeries = 1_000_000

// Config is the probe's own part of an entry of probes.
type Config struct {
	// Series is how many series there are; default 1
	Series int `yaml:"series,omitempty"`

	// JournalFile is a file to which the counts are appended, "try N" and "ack N", without fsync: it survives a kill of the
	// process. It grows by about 20 bytes a round.
	JournalFile string `yaml:"journal_file,omitempty"`

	// Noise adds a fraction that looks random to each value, because plain numbers compress to next to nothing.
	Noise bool `yaml:"noise,omitempty"`

	// Native adds two native histograms to each series, one of integers and one of floats, and an exemplar to the number.
	// All have the number as their sum or value, and the exemplar has it as its trace_id, too.
	Native bool `yaml:"native,omitempty"`
}

// Validate reports what is wrong with c.
func (c *Config) Validate() error {
	if c.Series < 0 || c.Series > maxSeries {
		return fmt.Errorf("series: %d is not between 1 and %d", c.Series, maxSeries)
	}
	return nil
}

// Probe implements [probes.Probe].
type Probe struct {
	family  probes.Family
	native  []*probes.Family // HistogramName and FloatHistogramName, or none
	ids     []string         // the values of the label "series"
	noise   bool
	number  uint64   // the last one tried
	file    string   // the journal's name, "" for none
	journal *os.File // open from the first round on
}

// New returns the probe. The journal is opened by the first round, which goes on counting
// where it ends: only then is the probe that it replaces after a reload surely done.
func New(c Config) (*Probe, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	p := &Probe{
		family: probes.Family{Name: Name, Help: "The number of the round: counts up by one each time.", Type: model.MetricTypeCounter},
		ids:    make([]string, max(1, c.Series)),
		noise:  c.Noise,
		file:   c.JournalFile,
	}
	for i := range p.ids {
		p.ids[i] = strconv.Itoa(i)
	}
	if c.Native {
		p.native = []*probes.Family{
			{Name: HistogramName, Help: "A native histogram of integers whose sum is the number of the round.", Type: model.MetricTypeHistogram},
			{Name: FloatHistogramName, Help: "A native histogram of floats whose sum is the number of the round.", Type: model.MetricTypeHistogram},
		}
	}
	return p, nil
}

// open opens the journal and continues its numbers.
func (p *Probe) open() error {
	last, err := lastTried(p.file)
	if err != nil {
		return fmt.Errorf("read canary journal: %w", err)
	}
	f, err := os.OpenFile(p.file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open canary journal: %w", err)
	}
	// A kill may have cut the last line: this ends it.
	if _, err := f.WriteString("\n"); err != nil {
		return errors.Join(fmt.Errorf("write canary journal: %w", err), f.Close())
	}
	p.number, p.journal = last, f
	return nil
}

// Collect adds the next number to every series.
func (p *Probe) Collect(_ context.Context, r *probes.Round) error {
	if p.file != "" && p.journal == nil {
		if err := p.open(); err != nil {
			return err
		}
	}
	p.number++
	// Before the samples can reach the log: a number that was tried is never tried again.
	if err := p.note("try"); err != nil {
		return err
	}
	for i, id := range p.ids {
		v := float64(p.number)
		if p.noise {
			v += Fraction(p.number, i)
		}
		if p.native == nil {
			r.Add(&p.family, v, "series", id)
			continue
		}
		p.addNative(r, v, []string{"series", id})
	}
	return nil
}

// Fraction returns the noise of a series in a round: at least 0, below 1, and so short that the
// sum of it and the number is exact, up to 2^51. It fills those of a float's 53 bits that the
// number does not need, with the hash that ends each step of the generator SplitMix64. A
// receiver computes the same noise, and so detects a changed sample.
func Fraction(number uint64, series int) float64 {
	h := number<<20 + uint64(series)
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	h ^= h >> 31
	room := max(0, 52-bits.Len64(number))
	return float64(h>>(64-room)) / float64(uint64(1)<<room)
}

// Committed notes that the log has acknowledged the round: all of its series.
func (p *Probe) Committed(err error) {
	if err == nil {
		// A line that cannot be written makes the account smaller, never wrong; the
		// next Collect reports the error.
		_ = p.note("ack")
	}
}

// Close closes the journal.
func (p *Probe) Close() error {
	if p.journal == nil {
		return nil
	}
	return p.journal.Close()
}

func (p *Probe) note(what string) error {
	if p.journal == nil {
		return nil
	}
	if _, err := fmt.Fprintf(p.journal, "%s %d\n", what, p.number); err != nil {
		return fmt.Errorf("write canary journal: %w", err)
	}
	return nil
}

// lastTried returns the greatest number in a journal, 0 if there is none.
func lastTried(file string) (uint64, error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var last uint64
	lines := bufio.NewReader(f)
	for {
		line, err := lines.ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if rest, ok := strings.CutPrefix(line, "try "); ok {
			// A cut line yields a smaller number or none; its round never reached the log.
			if n, perr := strconv.ParseUint(strings.TrimSuffix(rest, "\n"), 10, 64); perr == nil {
				last = max(last, n)
			}
		}
		if err != nil {
			return last, nil
		}
	}
}
