package exposition

import (
	"bytes"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"
)

// TestMutations reads bodies of Prometheus' own tests with random changes, each in a random format with random
// options: HWSAGENT_MUTATIONS of them, ten times as fast as the fuzzer, which looks for new paths.
func TestMutations(t *testing.T) {
	n := 20_000
	if testing.Short() { // one goroutine, which the race detector has nothing to say about
		n = 2000
	}
	if text := os.Getenv("HWSAGENT_MUTATIONS"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	r, all := random(t), setups()
	var seeds [][]byte
	of := corpus(t)
	for _, name := range []string{"nhcb.jsonl", "openmetrics1.jsonl", "openmetrics2.jsonl", "protobuf.jsonl", "text.jsonl"} {
		seeds = append(seeds, of[name]...)
	}
	for _, body := range hostile() {
		seeds = append(seeds, []byte(body))
	}
	began := time.Now()
	for i := 0; i < n && !t.Failed(); i++ {
		body, s := mutate(r, seeds), all[r.IntN(len(all))]
		checkEnds(t, body, s)
		if i%16 == 0 {
			compare(t, body, s)
		}
	}
	t.Logf("%d bodies, %.0f a second", n, float64(n)/time.Since(began).Seconds())
}

// mutate is a seed with some changes.
func mutate(r *rand.Rand, seeds [][]byte) []byte {
	body := bytes.Clone(seeds[r.IntN(len(seeds))])
	for range r.IntN(6) {
		if len(body) == 0 {
			return body
		}
		at := r.IntN(len(body))
		end := min(len(body), at+1+r.IntN(1+r.IntN(60)))
		switch r.IntN(8) {
		case 0:
			body[at] = byte(r.IntN(256))
		case 1:
			body[at] ^= 1 << r.IntN(8)
		case 2:
			const special = "\"\\{}#=,: \n\t\x00\xff0123-.eE+@_"
			body[at] = special[r.IntN(len(special))]
		case 3:
			body = slices.Delete(body, at, end)
		case 4: // again, somewhere else
			body = slices.Insert(body, r.IntN(len(body)), bytes.Clone(body[at:end])...)
		case 5:
			body = body[:at]
		case 6: // the end of another
			other := seeds[r.IntN(len(seeds))]
			body = append(body[:at], other[r.IntN(len(other)+1):]...)
		case 7:
			words := []string{" # {a=7", "# EOF\n", "_created", "# TYPE a counter\n", " st@1", "le=\"-Inf\"", "\x82\x01\x00", "\x1a\x00", "{", "\"", " {count:1,sum:1,bucket:[+Inf:1]}", "\"a\nb\""}
			body = slices.Insert(body, at, []byte(words[r.IntN(len(words))])...)
		}
	}
	return body
}
