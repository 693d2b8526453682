package pull

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// Bounds of answers. An answer holds a place while it is written, and a stalled reader would
// hold it until the server's write timeout. So a slow reader loses its place when others wait.
const (
	maxAtOnce = 4 // answers being written; each holds a snapshot of all series

	// patience is how long a reader may stay below leastRate before it loses its place. Only time
	// in which the answer waits for the reader counts. The kernel lets an answer go on only when a third
	// of its buffer is free, so a shorter time would prove little.
	patience  = 3 * time.Second
	leastRate = 16 << 10 // bytes a second

	// maxWait is how long a request waits for a place: less than Prometheus' default
	// scrape_timeout of 10 s.
	maxWait   = 8 * time.Second
	lookAgain = 250 * time.Millisecond // between checks for slow readers, while a request waits
	logAgain  = time.Minute            // minimum time between log lines about lost places
)

// errNoPlace is the reason for an answer of 503.
var errNoPlace = errors.New("no place is free")

// places limits the answers being written. It is safe for concurrent use.
type places struct {
	log   *slog.Logger
	slots chan struct{} // has an element for each taken place

	mu      sync.Mutex
	taken   map[*place]bool // the value: its end was requested
	waiting int
	lost    int // readers that lost their places since logged
	logged  time.Time
}

func newPlaces(log *slog.Logger) *places {
	return &places{log: log, slots: make(chan struct{}, maxAtOnce), taken: map[*place]bool{}}
}

// take waits for a place to write to w. The caller must leave the place.
func (s *places) take(ctx context.Context, w http.ResponseWriter) (*place, error) {
	p := &place{ResponseWriter: w, credit: patience}
	select {
	case s.slots <- struct{}{}:
	default:
		if err := s.wait(ctx); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken[p] = false
	return p, nil
}

// wait waits for a slot, and makes slow readers give up theirs.
func (s *places) wait(ctx context.Context) error {
	s.count(1)
	defer s.count(-1)
	end := time.NewTimer(maxWait)
	defer end.Stop()
	look := time.NewTicker(lookAgain)
	defer look.Stop()
	for {
		s.dismiss(time.Now())
		select {
		case s.slots <- struct{}{}:
			return nil
		case <-look.C:
		case <-end.C:
			return errNoPlace
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *places) count(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting += n
}

// dismiss ends the answers of readers that are too slow, at most as many as requests wait.
func (s *places) dismiss(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wanted := s.waiting
	for _, ending := range s.taken {
		if ending {
			wanted-- // its place will be free in a moment
		}
	}
	for p, ending := range s.taken {
		if wanted > 0 && !ending && p.slow(now) {
			s.taken[p] = true
			wanted--
			s.lost++
			p.end()
		}
	}
	if s.lost > 0 && now.Sub(s.logged) >= logAgain {
		s.log.Warn("A reader of the pull endpoint did not read its answer and lost its place, as others waited",
			"readers", s.lost, "bytes_per_second_at_least", leastRate, "patience", patience)
		s.logged, s.lost = now, 0
	}
}

// leave releases a place.
func (s *places) leave(p *place) {
	s.mu.Lock()
	delete(s.taken, p)
	s.mu.Unlock()
	<-s.slots
}

// place is where one answer is written. It measures its reader: the reader has a credit of time,
// which waiting for it uses up and data taken by it refills.
type place struct {
	http.ResponseWriter

	mu     sync.Mutex
	since  time.Time     // start of the Write in progress; zero if there is none
	credit time.Duration // as of the last Write; at most patience
}

// Write implements [http.ResponseWriter]. It writes in pieces that a reader takes within a
// second, unless it is too slow.
func (p *place) Write(b []byte) (n int, err error) {
	for len(b) > 0 && err == nil {
		var m int
		p.begin(time.Now())
		m, err = p.ResponseWriter.Write(b[:min(len(b), leastRate)])
		p.done(time.Now(), m)
		n, b = n+m, b[m:]
	}
	return n, err
}

func (p *place) begin(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.since = now
}

func (p *place) done(now time.Time, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	filled := time.Duration(n) * time.Second / leastRate
	p.credit = min(patience, max(0, p.credit-now.Sub(p.since))+filled)
	p.since = time.Time{}
}

// slow reports whether the answer waits for its reader and the credit is used up: the reader has
// taken less than leastRate for patience or longer.
func (p *place) slow(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.since.IsZero() && p.credit-now.Sub(p.since) <= 0
}

// end makes the Write in progress and all later ones fail.
func (p *place) end() {
	// Without support for deadlines, as in a test of the handler alone, the answer ends by itself.
	_ = http.NewResponseController(p.ResponseWriter).SetWriteDeadline(time.Unix(1, 0))
}

// Unwrap serves [http.ResponseController].
func (p *place) Unwrap() http.ResponseWriter { return p.ResponseWriter }
