package receivers_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"

	"hwsagent/receivers"
	"hwsagent/receivers/receivertest"
)

// TestBodiesDoNotMix: requests at once and one after the other, whose bodies share buffers, have their own bodies; and what a handler may
// keep stays as it was.
func TestBodiesDoNotMix(t *testing.T) {
	for _, reusable := range []bool{true, false} {
		t.Run(fmt.Sprintf("reusable=%t", reusable), func(t *testing.T) {
			var mu sync.Mutex
			kept := map[string][]byte{} // by a copy
			h := (&receivertest.Log{}).Gate("x", receivers.DefaultLimits()).Handler(func(w http.ResponseWriter, r *receivers.Request) error {
				if reusable {
					r.Reusable()
				} else {
					mu.Lock()
					kept[string(r.Body)] = r.Body
					mu.Unlock()
				}
				_, err := w.Write(r.Body)
				return err
			}, nil)
			var senders sync.WaitGroup
			for sender := range 4 {
				senders.Go(func() {
					random := rand.New(rand.NewPCG(1, uint64(sender)))
					for i := range 20 {
						body := make([]byte, 1+random.IntN(100<<10))
						for k := range body {
							body[k] = byte(random.IntN(8) + sender)
						}
						encoding := encodings()[i%len(encodings())]
						if w := post(h, encoding, compressed(t, encoding, body)); w.Code != 200 || !bytes.Equal(w.Body.Bytes(), body) {
							t.Errorf("%s: %d, %d bytes of another body", encoding, w.Code, w.Body.Len())
						}
					}
				})
			}
			senders.Wait()
			for body, now := range kept {
				if string(now) != body {
					t.Fatalf("a body of %d bytes was overwritten", len(body))
				}
			}
		})
	}
}

// TestLargeBodiesAreNotKept: buffers are used again up to a bound.
func TestLargeBodiesAreNotKept(t *testing.T) {
	for size, want := range map[int]bool{1 << 20: true, 3 << 20: false} {
		var at []*byte
		h := (&receivertest.Log{}).Gate("x", receivers.DefaultLimits()).Handler(func(_ http.ResponseWriter, r *receivers.Request) error {
			r.Reusable()
			at = append(at, &r.Body[0])
			return nil
		}, nil)
		for range 3 {
			post(h, "snappy", compressed(t, "snappy", make([]byte, size)))
		}
		if len(at) != 3 || (at[0] == at[1]) != want || (at[1] == at[2]) != want {
			t.Errorf("bodies of %d bytes are at %v", size, at)
		}
	}
}
