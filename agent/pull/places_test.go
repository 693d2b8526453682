package pull

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// paced is the connection of a reader who takes size bytes, then pauses, and so on. Past a
// deadline its writes fail, as those of a socket do.
type paced struct {
	header http.Header
	size   int
	pause  time.Duration

	end chan struct{} // closed by the deadline
	n   int           // bytes of this turn
	all int
}

func newPaced(size int, pause time.Duration) *paced {
	return &paced{header: http.Header{}, size: size, pause: pause, end: make(chan struct{})}
}

func (p *paced) Header() http.Header { return p.header }
func (p *paced) WriteHeader(int)     {}

func (p *paced) SetWriteDeadline(time.Time) error {
	close(p.end)
	return nil
}

func (p *paced) Write(b []byte) (int, error) {
	for i := range b {
		if p.n++; p.n < p.size {
			continue
		}
		p.n = 0
		select {
		case <-p.end:
			return i, http.ErrHandlerTimeout
		case <-time.After(p.pause):
		}
	}
	p.all += len(b)
	return len(b), nil
}

// A reader that takes leastRate keeps its place, in whatever pieces up to patience; one that takes
// less loses it when another request waits, and only then.
func TestSlowReaders(t *testing.T) {
	const total = 1 << 20
	for _, tc := range []struct {
		size   int
		pause  time.Duration
		waits  bool
		stays  bool
		atMost time.Duration // until the one who waits has a place
	}{
		{1 << 10, time.Second / 17, true, true, 0},
		{16 << 10, time.Second - time.Millisecond, true, true, 0},
		{40 << 10, 2400 * time.Millisecond, true, true, 0},
		{1 << 20, 2 * time.Second, true, true, 0},
		{1, time.Hour, true, false, patience + lookAgain},
		{1 << 10, time.Second, true, false, patience + time.Second},
		{64 << 10, 10 * time.Second, true, false, 5*patience + lookAgain},
		{1, time.Hour, false, true, 0},
	} {
		t.Run(fmt.Sprintf("%d bytes each %s, another waits: %t", tc.size, tc.pause, tc.waits), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newPlaces(slog.New(slog.DiscardHandler))
				readers := make([]*paced, maxAtOnce)
				failed := make(chan error, maxAtOnce)
				stop := make(chan struct{})
				for i := range readers {
					readers[i] = newPaced(tc.size, tc.pause)
					p, err := s.take(t.Context(), readers[i])
					if err != nil {
						t.Fatal(err)
					}
					go func() {
						defer s.leave(p)
						body := make([]byte, 64<<10)
						for written := 0; written < total; written += len(body) {
							if _, err := p.Write(body); err != nil {
								failed <- err
								return
							}
							select {
							case <-stop:
								return
							default:
							}
						}
						failed <- nil
					}()
				}
				began := time.Now()
				if tc.waits {
					// It retries after a refusal, as the answer asks.
					for {
						p, err := s.take(t.Context(), httptest.NewRecorder())
						if err == nil {
							s.leave(p)
							break
						}
						if time.Since(began) > 10*time.Minute {
							t.Fatal("it never has a place")
						}
					}
					if d := time.Since(began); tc.atMost > 0 && d > tc.atMost {
						t.Errorf("it waits %v, more than %v", d, tc.atMost)
					}
				} else {
					time.Sleep(10 * time.Minute)
				}
				close(stop)
				if !tc.stays {
					if err := <-failed; err == nil {
						t.Error("a slow reader kept its place")
					}
				}
				for _, r := range readers {
					select {
					case <-r.end:
						if tc.stays {
							t.Error("a reader lost its place")
						}
					default:
						close(r.end)
					}
				}
			})
		})
	}
}

// One reader is dismissed for each request that waits, not all that are slow.
func TestOnePlaceForEachThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newPlaces(slog.New(slog.DiscardHandler))
		var readers []*paced
		for range maxAtOnce {
			r := newPaced(1, time.Hour)
			p, err := s.take(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			readers = append(readers, r)
			go func() {
				defer s.leave(p)
				_, _ = p.Write(make([]byte, 10))
			}()
		}
		time.Sleep(time.Minute)
		p, err := s.take(t.Context(), httptest.NewRecorder())
		if err != nil {
			t.Fatal(err)
		}
		ended := 0
		for _, r := range readers {
			select {
			case <-r.end:
				ended++
			default:
				close(r.end)
			}
		}
		if ended != 1 {
			t.Errorf("%d readers lost their places", ended)
		}
		s.leave(p)
	})
}
