package receivers

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"io"
	"net/http"
	"sync"
)

// maxRepeats is how many stored requests a receiver remembers: more than all its senders together have under way.
const maxRepeats = 4096

// digest identifies the body of a request, and what else decides how it is read.
type digest [sha256.Size]byte

// repeats remembers the requests that a receiver has stored, in memory only: a sender that got no answer sends its
// request again. The log recognises only a series' newest sample, so earlier ones of the request would be logged as late
// samples, refused by the targets, and reported as lost. Who has sent a request does not matter: the same samples are
// the same samples. It is safe for concurrent use.
type repeats struct {
	key []byte // so that no sender can make two bodies with one digest

	mu      sync.Mutex
	answers map[digest]Answer // of stored requests
	order   []digest          // of answers, as a ring
	oldest  int               // in order, once it is full
	working map[digest]chan struct{}
}

// Answer writes the answer to a request whose samples are in the log. It is kept with the request's digest, so it must
// not refer to the request.
type Answer func(w http.ResponseWriter)

func newRepeats() *repeats {
	s := &repeats{key: make([]byte, sha256.BlockSize), answers: map[digest]Answer{}, working: map[digest]chan struct{}{}}
	_, _ = rand.Read(s.key) // never fails
	return s
}

// of returns the digest of a request with that body, as received.
func (s *repeats) of(r *http.Request, body []byte) (d digest) {
	h := sha256.New()
	h.Write(s.key)
	for _, part := range []string{r.URL.RawQuery, r.Header.Get("Content-Type"), r.Header.Get("Content-Encoding"), r.Header.Get("Grpc-Encoding")} {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		_, _ = io.WriteString(h, part) // a hash never fails
	}
	h.Write(body)
	h.Sum(d[:0])
	return d
}

// begin returns the answer to an equal request that was stored before. If it is nil, the caller must store the request
// and call end. Equal requests wait for each other, until ctx ends.
func (s *repeats) begin(ctx context.Context, d digest) (Answer, error) {
	for {
		s.mu.Lock()
		if a := s.answers[d]; a != nil {
			s.mu.Unlock()
			return a, nil
		}
		other := s.working[d]
		if other == nil {
			s.working[d] = make(chan struct{})
			s.mu.Unlock()
			return nil, nil
		}
		s.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// end ends the work on a request. stored is the answer to equal requests, nil if they must be stored.
func (s *repeats) end(d digest, stored Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.working[d])
	delete(s.working, d)
	switch {
	case stored == nil:
		return
	case len(s.order) < maxRepeats:
		s.order = append(s.order, d)
	default:
		delete(s.answers, s.order[s.oldest])
		s.order[s.oldest] = d
		s.oldest = (s.oldest + 1) % maxRepeats
	}
	s.answers[d] = stored
}

// Once calls store, unless one of the last requests of the receiver had the same body and all of it was stored: then it
// repeats the answer, and counts the request. store returns the answer if the request is in the log, and whether all of
// it is there and the same body would mean the same samples, which it does not if they have no times of their own.
func (r *Request) Once(w http.ResponseWriter, store func() (a Answer, whole bool, err error)) error {
	s := r.gate.repeats
	d := s.of(r.Request, r.raw)
	a, err := s.begin(r.Context(), d)
	if err != nil {
		return err
	}
	if a != nil {
		r.gate.count(func(c *Counts) { c.Repeated++ })
		a(w)
		return nil
	}
	var kept Answer
	defer func() { s.end(d, kept) }()
	a, whole, err := store()
	if err != nil {
		return err
	}
	if whole {
		kept = a
	}
	a(w)
	return nil
}
