package pull

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// Bounds of answers. A place is held while an answer is written, and a reader that does not
// read would hold it until the server's write timeout. So it loses its place when others wait.
const (
	maxAtOnce = 4 // answers that are being written; each holds a snapshot of all series

	// patience is how long a reader may take less than leastRate before it loses its place. Only
	// the time counts in which the answer waits for the reader. The kernel hands on what a reader
	// takes in pieces, on loopback of up to some 400 KB: a shorter time would say little.
	patience  = 3 * time.Second
	leastRate = 16 << 10 // bytes a second

	// maxWait is how long a request waits for a place: less than Prometheus' default
	// scrape_timeout of 10 s.
	maxWait   = 8 * time.Second
	lookAgain = 250 * time.Millisecond // for readers that are slow, while a request waits
	logAgain  = time.Minute            // at the earliest, that readers lost their places
)

// errNoPlace is why a request is answered 503.
var errNoPlace = errors.New("no place is free")

// places are where answers are written. They are safe for concurrent use.
type places struct {
	log   *slog.Logger
	slots chan struct{} // has an element for each place that is taken

	mu      sync.Mutex
	taken   map[*place]bool // the value: it was told to end
	waiting int
	lost    int // readers that lost their places since logged
	logged  time.Time
}

func newPlaces(log *slog.Logger) *places {
	return &places{log: log, slots: make(chan struct{}, maxAtOnce), taken: map[*place]bool{}}
}

// take waits for a place to write to w. The place must be left.
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

// wait waits for a slot, and sees to it that slow readers give theirs up.
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

// dismiss ends the answers to readers that are too slow, at most as many as requests wait.
func (s *places) dismiss(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wanted := s.waiting
	for _, told := range s.taken {
		if told {
			wanted-- // its place will be free in a moment
		}
	}
	for p, told := range s.taken {
		if wanted > 0 && !told && p.slow(now) {
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

// leave gives a place back.
func (s *places) leave(p *place) {
	s.mu.Lock()
	delete(s.taken, p)
	s.mu.Unlock()
	<-s.slots
}

// place is where one answer is written. It knows how fast its reader is: the reader has a credit
// of time, which the waiting for it uses up, and what it takes fills again.
type place struct {
	http.ResponseWriter

	mu     sync.Mutex
	since  time.Time     // of the Write in progress; zero if there is none
	credit time.Duration // as of the last Write; at most patience
}

// Write implements [http.ResponseWriter]. It writes in pieces that a reader takes in a second or
// less, unless it is too slow.
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

// end makes the Write in progress fail, and each later one.
func (p *place) end() {
	// Without deadlines, as in a test of the handler alone, the answer ends by itself.
	_ = http.NewResponseController(p.ResponseWriter).SetWriteDeadline(time.Unix(1, 0))
}

// Unwrap is for [http.ResponseController].
func (p *place) Unwrap() http.ResponseWriter { return p.ResponseWriter }
