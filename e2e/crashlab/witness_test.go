//go:build linux

package crashlab

import (
	"bufio"
	"errors"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/prometheus/prompb"

	"hwsagent/agent/demo/receiver"
)

// witness notes when each number was tried, acknowledged and first received, by this
// process's clock. It reads the journal while it grows.
type witness struct {
	file string
	stop chan struct{}
	done sync.WaitGroup

	mu       sync.Mutex
	tried    map[uint64]time.Time
	acked    map[uint64]time.Time
	came     map[uint64]time.Time
	ackedMax uint64
	slip     time.Duration // the longest that this goroutine overslept: the machine's own noise
}

// pace is how often the journal is read: the error of the times.
const pace = 5 * time.Millisecond

func newWitness(t *testing.T, file string) *witness {
	w := &witness{
		file: file, stop: make(chan struct{}),
		tried: map[uint64]time.Time{}, acked: map[uint64]time.Time{}, came: map[uint64]time.Time{},
	}
	w.done.Go(func() {
		if err := w.follow(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		close(w.stop)
		w.done.Wait()
	})
	return w
}

func (w *witness) follow() error {
	var f *os.File
	var lines *bufio.Reader
	part := ""
	ticker := time.NewTicker(pace)
	defer ticker.Stop()
	for last := time.Now(); ; {
		select {
		case <-w.stop:
			if f != nil {
				f.Close()
			}
			return nil
		case <-ticker.C:
		}
		now := time.Now()
		w.mu.Lock()
		w.slip = max(w.slip, now.Sub(last)-pace)
		w.mu.Unlock()
		last = now
		if f == nil {
			var err error
			if f, err = os.Open(w.file); errors.Is(err, os.ErrNotExist) {
				continue
			} else if err != nil {
				return err
			}
			lines = bufio.NewReader(f)
		}
		for {
			line, err := lines.ReadString('\n')
			part += line
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
			w.note(part, now)
			part = ""
		}
	}
}

func (w *witness) note(line string, now time.Time) {
	what, number, _ := strings.Cut(strings.TrimSpace(line), " ")
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return // a line that a kill cut short, or the empty one after it
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch what {
	case "try":
		w.tried[n] = now
	case "ack":
		if n > w.ackedMax {
			w.acked[n], w.ackedMax = now, n
		}
	}
}

// arrived notes what the receiver stores.
func (w *witness) arrived(series []prompb.TimeSeries) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, ts := range series {
		if receiver.Label(ts, "__name__") != receiver.CanaryName || receiver.Label(ts, "series") != "0" {
			continue
		}
		for _, s := range ts.Samples {
			if _, again := w.came[uint64(s.Value)]; !again {
				w.came[uint64(s.Value)] = now
			}
		}
	}
}

func (w *witness) lastAcked() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ackedMax
}

// at returns when a number was tried, acknowledged and received; zero if it was not.
func (w *witness) at(n uint64) (tried, acked, came time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.tried[n], w.acked[n], w.came[n]
}

// gap returns the longest time between two rounds of the probe, in that stretch of time.
func (w *witness) gap(from, to time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	var times []time.Time
	for _, t := range w.tried {
		if t.After(from) && t.Before(to) {
			times = append(times, t)
		}
	}
	slices.SortFunc(times, time.Time.Compare)
	longest, last := time.Duration(0), from
	for _, t := range append(times, to) {
		longest, last = max(longest, t.Sub(last)), t
	}
	return longest
}

// ackedAfter returns how long after a time the first round was acknowledged that was tried
// after it; false if none was.
func (w *witness) ackedAfter(since time.Time) (time.Duration, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	first := time.Duration(-1)
	for n, at := range w.acked {
		if d := at.Sub(since); w.tried[n].After(since) && (first < 0 || d < first) {
			first = d
		}
	}
	return first, first >= 0
}

// slippedBy returns how late this process itself woke up at worst.
func (w *witness) slippedBy() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.slip
}
