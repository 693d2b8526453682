//go:build linux

package crashlab

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"

	"hwsagent/internal/tools/results"
)

// tornWho is the sender of bodies that are spoilt.
const tornWho = 99

// spoilt is a body that somebody has damaged, or sends as what it is not.
type spoilt struct {
	how      string
	body     []byte
	encoding string
	// whole is set for what can still be a request, with another meaning. Of anything else
	// nothing may be stored.
	whole bool
}

// spoil damages the body of a request, at random.
func spoil(rnd *rand.Rand, w way, body []byte) spoilt {
	flipped := func() []byte {
		b := slices.Clone(body)
		for range 1 + rnd.IntN(3) {
			b[rnd.IntN(len(b))] ^= 1 << rnd.IntN(8)
		}
		return b
	}
	noise := make([]byte, 1+rnd.IntN(2000))
	for i := range noise {
		noise[i] = byte(rnd.Uint32())
	}
	text := w == byText || w == byPush
	switch rnd.IntN(6) {
	case 0: // a text that ends with a line, or within the last number, is one
		return spoilt{how: "cut off", body: body[:1+rnd.IntN(len(body)-1)], whole: text || w == byOTLP}
	case 1:
		return spoilt{how: "bits flipped", body: flipped(), whole: true}
	case 2:
		return spoilt{how: "noise", body: noise, whole: w == byOTLP}
	case 3:
		at := rnd.IntN(len(body))
		return spoilt{how: "noise inside", body: slices.Concat(body[:at], noise, body[at:]), whole: text || w == byOTLP}
	case 4:
		return spoilt{how: "wrong encoding", body: body, encoding: []string{"gzip", "zstd", "br", "deflate, gzip"}[rnd.IntN(4)]}
	default:
		return spoilt{how: "nothing", body: nil, whole: true}
	}
}

// TestInputsMalformed sends damaged bodies through every input, and bytes that are not HTTP, while all others send
// correct data: each is answered with 4xx or happens to be a valid request, nothing of the refused ones is stored, and
// other senders are unaffected.
func TestInputsMalformed(t *testing.T) {
	t.Parallel()
	rnd := seeded(t)
	in := newInputs(t, options{wal: "max_bytes: 256MiB, min_free_bytes: 1MiB", interval: 100 * time.Millisecond}, "")
	in.start()
	in.ready()
	in.send()
	in.answered(time.Now(), "are taken", answer.ok)
	began, each := time.Now(), amount(60, 2000)
	at, n := began.Add(-time.Hour).UnixMilli(), uint64(0) // of each request its own
	hows, answers := map[string]int{}, map[int]int{}
	for _, w := range ways() {
		client := w.client()
		for range each {
			at++
			n++
			body, err := w.body(tornName, tornWho, n, at)
			if err != nil {
				t.Fatal(err)
			}
			s := spoil(rnd, w, body)
			got := w.ask(t.Context(), client, http.MethodPost, in.url(w, tornWho), s.encoding, s.body)
			hows[s.how]++
			answers[got.status]++
			if got.status/100 != 4 && !(s.whole && got.ok()) {
				t.Errorf("%s by %s is answered %d %.200s: %q", s.how, w, got.status, got.text, s.body)
			}
			if !s.whole && w != byPush {
				in.account.forbid(at, float64(n))
			}
		}
		client.CloseIdleConnections()
	}
	junk := 0
	for range amount(10, 300) {
		for _, to := range []string{in.write, in.push, in.text, in.otlp, in.grpc} {
			junk++
			in.junk(rnd, to)
		}
	}
	// The senders had no more to bear than other requests.
	for _, s := range in.senders {
		if n, last := s.since(began, func(a answer) bool { return !a.ok() }); n > 0 {
			t.Errorf("%d good requests by %s were not taken; the last: %+v", n, s.way, last)
		}
	}
	gap := in.witness.gap(began, time.Now()) - in.interval
	in.quietInputs()
	r, g := in.settle()
	v := in.judge(nil)
	g.Lost -= g.Dropped["future"] + in.secondValues() // a damaged time or label, of what passed for a request
	in.holds(v, r, g)
	if v.refused > 0 {
		t.Errorf("%d good requests were refused", v.refused)
	}
	t.Logf("%v, answered %v; %d times no HTTP; a round was at most %s late", hows, answers, junk, gap)
	results.Add(t, results.Line{
		What: "inputs: malformed bodies while all send", Count: len(ways())*each + junk, Lost: v.lost + v.undone + int(r.Missing), Seed: seed(t),
		Figures: v.figures(map[string]float64{
			"refused": float64(answers[400] + answers[413] + answers[415]), "requests_after_all": float64(answers[200] + answers[202] + answers[204]),
			"refused_and_stored": float64(in.account.forbidden()), "latest_round_ms": float64(gap.Milliseconds()),
			"noise_of_the_machine_ms": float64(in.witness.slippedBy().Milliseconds()),
		}),
	})
	if limit := time.Second + in.noise(); gap > limit {
		t.Errorf("a round of the probe was %s late, more than %s", gap, limit)
	}
	if n := in.account.forbidden(); n > 0 {
		t.Errorf("of %d requests that were refused something is stored", n)
	}
	if answers[400] == 0 || len(hows) < 6 {
		t.Errorf("the bodies were not all malformed: %v, %v", hows, answers)
	}
}

// junk sends bytes that are no HTTP, and closes the connection.
func (in *inputs) junk(rnd *rand.Rand, to string) {
	in.t.Helper()
	conn, err := net.Dial("tcp", to)
	if err != nil {
		in.t.Fatal(err)
	}
	defer conn.Close()
	noise := make([]byte, rnd.IntN(4096))
	for i := range noise {
		noise[i] = byte(rnd.Uint32())
	}
	head := []string{
		"", "POST /api/v1/write HTTP/1.1\r\n", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nfffffff\r\n",
		"POST /v1/metrics HTTP/1.1\r\nHost: " + to + "\r\nContent-Length: -1\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
	}[rnd.IntN(6)]
	fmt.Fprintf(conn, "%s%s", head, noise) // the agent may have closed it already
}

// tornName is the metric in malformed requests; no account includes it.
const tornName = "torn"

// sample is a time and a value: damaging the time gives another sample.
type sample struct {
	at int64
	v  float64
}

// forbid says that this sample of what is malformed may not come.
func (i *intake) forbid(at int64, v float64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.never[sample{at, v}] = true
}

// forbidden returns how many of those have come.
func (i *intake) forbidden() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	torn := maps.Clone(i.torn)
	maps.DeleteFunc(torn, func(s sample, _ bool) bool { return !i.never[s] })
	return len(torn)
}
