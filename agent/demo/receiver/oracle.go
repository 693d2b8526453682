package receiver

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/prompb"
)

// CanaryName is the metric in which the canary probe counts, and canaryLabel the label that distinguishes its series.
const (
	CanaryName  = "hwsagent_canary"
	canaryLabel = "series"
)

// Oracle keeps account of canary samples. Each number is sent once per series, so a missing number is lost, a repeated
// one is a duplicate, and one that comes after a greater one is out of order. It is safe for concurrent use.
type Oracle struct {
	mu         sync.Mutex
	series     map[string]*canary
	received   uint64
	duplicated uint64
	outOfOrder uint64
	foreign    uint64
	last       uint64
}

// canary is one series' account.
type canary struct {
	times []uint8 // how often number i+1 arrived, at most 255
	max   uint64  // the greatest number so far
	maxT  int64   // and its timestamp
}

// NewOracle returns an oracle that has seen nothing.
func NewOracle() *Oracle { return &Oracle{series: make(map[string]*canary)} }

// Add counts the canary samples among series and ignores all others, including stale markers.
func (o *Oracle) Add(series []prompb.TimeSeries) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, ts := range series {
		if Label(ts, "__name__") != CanaryName {
			continue
		}
		id := Label(ts, canaryLabel)
		c := o.series[id]
		if c == nil {
			c = &canary{}
			o.series[id] = c
		}
		for _, s := range ts.Samples {
			o.add(c, s)
		}
	}
}

func (o *Oracle) add(c *canary, s prompb.Sample) {
	if math.Float64bits(s.Value) == value.StaleNaN {
		return
	}
	n := uint64(s.Value)
	if n == 0 || float64(n) != s.Value || n > 1<<32 {
		o.foreign++ // no canary sends this: the value was corrupted on its way
		return
	}
	for uint64(len(c.times)) < n {
		c.times = append(c.times, 0)
	}
	if c.times[n-1] > 0 {
		o.duplicated++
		if c.times[n-1] < math.MaxUint8 {
			c.times[n-1]++
		}
		return
	}
	c.times[n-1] = 1
	o.received++
	o.last = max(o.last, n)
	if n < c.max || s.Timestamp <= c.maxT {
		o.outOfOrder++
		return
	}
	c.max, c.maxT = n, s.Timestamp
}

// Received returns how many canary samples arrived, without duplicates.
func (o *Oracle) Received() uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.received
}

// Last returns the greatest number that arrived, in any series.
func (o *Oracle) Last() uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.last
}

// Result accounts for the canary samples that the log acknowledged.
//
// Invariant: Appended = Delivered + Missing.
type Result struct {
	Appended   uint64 // acknowledged by the log
	Delivered  uint64 // of these, received at least once
	Missing    uint64 // of these, not received
	Duplicated uint64 // samples received again, however often
	OutOfOrder uint64 // samples whose first arrival came after a later sample of the series
	Garbled    uint64 // values that no canary sends

	// Unacknowledged samples were received although the log did not acknowledge them: either a kill came before the
	// acknowledgement, or the log had refused them, which is a bug.
	Unacknowledged uint64
	Ghosts         uint64 // received, but never tried
}

// Verify compares the received samples with those that the journal lists as acknowledged, for the given number of
// series.
func (o *Oracle) Verify(j Journal, series int) Result {
	o.mu.Lock()
	defer o.mu.Unlock()
	r := Result{Duplicated: o.duplicated, OutOfOrder: o.outOfOrder, Garbled: o.foreign}
	for i := range series {
		c := o.series[strconv.Itoa(i)]
		for _, n := range j.Acked {
			r.Appended++
			if c != nil && n <= uint64(len(c.times)) && c.times[n-1] > 0 {
				r.Delivered++
			} else {
				r.Missing++
			}
		}
		if c == nil {
			continue
		}
		for n, times := range c.times {
			switch number := uint64(n) + 1; {
			case times == 0:
			case number > j.Tried:
				r.Ghosts++
			default:
				if _, acked := slices.BinarySearch(j.Acked, number); !acked {
					r.Unacknowledged++
				}
			}
		}
	}
	return r
}

// Missing lists the acknowledged numbers that at least one of the series lacks.
func (o *Oracle) Missing(j Journal, series int) []uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	var missing []uint64
	for _, n := range j.Acked {
		for i := range series {
			if c := o.series[strconv.Itoa(i)]; c == nil || n > uint64(len(c.times)) || c.times[n-1] == 0 {
				missing = append(missing, n)
				break
			}
		}
	}
	return missing
}

// Journal is the canary probe's own record, outside the agent's log.
type Journal struct {
	Tried uint64   // the greatest number that it tried
	Acked []uint64 // the numbers that the log acknowledged, ascending
}

// ReadJournal reads a canary probe's journal. A missing file is an empty journal; a last line that a kill truncated is
// ignored.
func ReadJournal(file string) (Journal, error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return Journal{}, nil
	}
	if err != nil {
		return Journal{}, fmt.Errorf("read canary journal: %w", err)
	}
	defer f.Close()
	var j Journal
	lines := bufio.NewReader(f)
	for {
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return j, nil
		}
		if err != nil {
			return j, fmt.Errorf("read canary journal: %w", err)
		}
		what, number, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		n, err := strconv.ParseUint(number, 10, 64)
		if err != nil {
			continue
		}
		switch what {
		case "try":
			j.Tried = max(j.Tried, n)
		case "ack":
			// A truncated number is smaller than the ones before it.
			if len(j.Acked) == 0 || n > j.Acked[len(j.Acked)-1] {
				j.Acked = append(j.Acked, n)
			}
		}
	}
}
