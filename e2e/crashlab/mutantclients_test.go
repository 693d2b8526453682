//go:build linux

package crashlab

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/golang/snappy"

	"hwsagent/e2e/mutate"
)

// asker is a peer that asks the agent by one of the ways in, or to be shown something.
type asker struct {
	sort    string
	name    string // its sort and a number
	address string
	tls     *tls.Config // nil: none
	http2   bool
	right   func(rnd *rand.Rand) mutate.Request
	// contents are those that the body of a request may have.
	contents []mutate.Content

	protocol, content *deck         // which it plays from in turn
	patience          time.Duration // the longest that it stays with one connection

	stop    context.CancelFunc
	serving sync.WaitGroup

	mu       sync.Mutex
	statuses map[int]int // of answers, 0 for none
	taken    int         // right requests that got 2xx
}

// askEvery is the pause between the requests of one peer, on average: with a hundred of them the
// agent is asked 250 times a second. More would judge how much load it bears, and not what
// damaged messages do to it.
const askEvery = 400 * time.Millisecond

// kinds returns the ways in which it asks wrongly: by the protocol, and by the content.
func (a *asker) kinds() (protocol, content []mutate.Kind) {
	plain := a.right(rand.New(rand.NewPCG(0, 0)))
	if !a.http2 {
		return mutate.Requests(a.right), plain.With(a.contents)
	}
	begin := []mutate.Step{mutate.Preface()}
	protocol = mutate.HTTP2(begin, 1, func(rnd *rand.Rand) []mutate.Frame { return a.right(rnd).Frames() })
	for _, c := range a.contents {
		content = append(content, mutate.Kind{Name: "content: " + c.Name, Make: func(rnd *rand.Rand) mutate.Script {
			one := plain
			one.Body = c.Make(rnd)
			return mutate.Script{Steps: append(begin, mutate.Sent(one.Frames()).Steps...)}
		}})
	}
	return protocol, content
}

func (a *asker) open() error {
	ctx, cancel := context.WithCancel(context.Background())
	a.stop = cancel
	a.serving.Go(func() {
		rnd := rand.New(rand.NewPCG(a.protocol.of.seed, 0))
		for n := 0; ctx.Err() == nil; n++ {
			a.ask(ctx, rnd, n)
			select {
			case <-ctx.Done():
			case <-time.After(askEvery/2 + rand.N(askEvery)):
			}
		}
	})
	return nil
}

func (a *asker) shut() {
	if a.stop != nil {
		a.stop()
	}
	a.serving.Wait()
}

// ask plays the n-th script, on a connection of its own.
func (a *asker) ask(ctx context.Context, rnd *rand.Rand, n int) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", a.address)
	if err != nil {
		return // the agent is stopped, or has no place for one more
	}
	defer conn.Close()
	c := mutate.Conn{Conn: conn, TCP: conn.(*net.TCPConn)}
	ended := context.AfterFunc(ctx, func() { conn.Close() })
	defer ended()
	limit := time.AfterFunc(a.patience, func() { conn.Close() })
	defer limit.Stop()
	if a.tls != nil {
		t := tls.Client(conn, a.tls)
		if t.HandshakeContext(ctx) != nil {
			return
		}
		c.Conn = t
	}
	protocol, content := a.kinds()
	script, wrong := mutate.Script{}, false
	if n%2 == 0 {
		script, wrong = a.protocol.deal(a.name, protocol)
	} else {
		script, wrong = a.content.deal(a.name, content)
	}
	if !wrong {
		script = a.right(rnd).Script()
		if a.http2 {
			script = mutate.Sent(a.right(rnd).Frames())
			script.Steps = append([]mutate.Step{mutate.Preface()}, script.Steps...)
		}
	}
	status := 0
	if script.Play(c) {
		status = a.read(c)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.statuses == nil {
		a.statuses = map[int]int{}
	}
	a.statuses[status]++
	if !wrong && status/100 == 2 {
		a.taken++
	}
}

// read reads what comes for a moment, and returns the status of the first answer: over HTTP/2
// 200 for anything that holds an answer's DATA or trailers.
func (a *asker) read(c mutate.Conn) int {
	_ = c.SetReadDeadline(time.Now().Add(a.patience / 2)) // fails only where the connection is gone
	head := make([]byte, 4<<10)
	n, err := io.ReadAtLeast(c, head, 12)
	if a.http2 {
		for err == nil && !bytes.Contains(head[:n], []byte{0, 0, 0, 1}) { // until something is said about stream 1
			more, e := c.Read(head[n:])
			n, err = n+more, e
			if n == len(head) {
				break
			}
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return 0
		}
		return http.StatusOK
	}
	if err != nil || string(head[:7]) != "HTTP/1." {
		return 0
	}
	status, err := strconv.Atoi(string(head[9:12]))
	if err != nil {
		return 0
	}
	return status
}

// fields returns a header as a request has it.
func fields(h http.Header) (all []mutate.Field) {
	for _, name := range []string{"Content-Type", "Content-Encoding", "Te"} {
		if v := h.Get(name); v != "" {
			all = append(all, mutate.Field{Name: name, Value: v})
		}
	}
	return all
}

// mutantName is the metric of what askers say.
const mutantName = "mutant_said"

// through are contents changed by a function, such as one that compresses.
func through(all []mutate.Content, f func([]byte) []byte) (out []mutate.Content) {
	for _, c := range all {
		out = append(out, mutate.Content{Name: c.Name, Make: func(rnd *rand.Rand) mutate.Body { return mutate.Of(f(c.Make(rnd).Bytes())) }})
	}
	return out
}

// way makes the requests of a way in.
func (a *asker) way(w way, in addresses) {
	body := func(rnd *rand.Rand) []byte {
		b, err := w.body(mutantName, rnd.IntN(50), uint64(1+rnd.IntN(1000)), time.Now().UnixMilli())
		if err != nil {
			panic(err) // a message that this package makes
		}
		return b
	}
	host := map[way]string{byWrite1: in.write, byWrite2: in.write, byPush: in.push, byText: in.text, byOTLP: in.otlp, byGRPC: in.grpc}[w]
	path := in.url(w, 1)[len("http://"+host):]
	a.address, a.http2 = host, a.http2 || w == byGRPC
	a.right = func(rnd *rand.Rand) mutate.Request {
		return mutate.Request{Method: http.MethodPost, Path: path, Host: host, Head: fields(w.header()), Body: mutate.Of(body(rnd))}
	}
	switch w {
	case byWrite1, byWrite2:
		raw := func(rnd *rand.Rand) []byte {
			b, err := snappy.Decode(nil, body(rnd))
			if err != nil {
				panic(err)
			}
			return b
		}
		a.contents = append(through(mutate.Protobuf(raw), func(b []byte) []byte { return snappy.Encode(nil, b) }), mutate.Content{Name: "a length of snappy that is wrong", Make: func(rnd *rand.Rand) mutate.Body {
			return mutate.Of(append([]byte{0xff, 0xff, 0xff, 0xff, byte(rnd.IntN(256))}, body(rnd)...))
		}})
	case byOTLP:
		a.contents = mutate.Protobuf(body)
	case byGRPC:
		framed := func(b []byte) []byte {
			n := len(b)
			return append([]byte{0, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}, b...)
		}
		a.contents = append(through(mutate.Protobuf(func(rnd *rand.Rand) []byte { return body(rnd)[5:] }), framed), mutate.Content{Name: "a length of gRPC that is wrong", Make: func(rnd *rand.Rand) mutate.Body {
			return mutate.Of(append([]byte{byte(rnd.IntN(256)), byte(rnd.IntN(256)), 0xff, 0xff, 0xff}, body(rnd)...))
		}})
	default:
		a.contents = mutate.Expositions(false)
	}
}

// otlpJSON is a request of OTLP as JSON.
const otlpJSON = `{"resourceMetrics":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"m"}}]},"scopeMetrics":[{"metrics":[{"name":"mutant_said","sum":{"aggregationTemporality":2,"isMonotonic":true,"dataPoints":[{"asInt":"7","timeUnixNano":"%d"}]}}]}]}]}`

// other are the askers whose requests no [way] makes.
func (a *asker) other(what string, in addresses, page, shown string) {
	post := func(host, path, contentType string, body func(*rand.Rand) []byte) {
		a.address = host
		a.right = func(rnd *rand.Rand) mutate.Request {
			return mutate.Request{Method: http.MethodPost, Path: path, Host: host, Head: []mutate.Field{{Name: "Content-Type", Value: contentType}}, Body: mutate.Of(body(rnd))}
		}
	}
	get := func(host string, paths ...string) {
		a.address = host
		a.right = func(rnd *rand.Rand) mutate.Request {
			method, path := http.MethodGet, paths[rnd.IntN(len(paths))]
			if path == "/-/reload" {
				method = http.MethodPost
			}
			return mutate.Request{Method: method, Path: path, Host: host, Head: []mutate.Field{{Name: "Accept", Value: "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"}, {Name: "Accept-Encoding", Value: "gzip"}}}
		}
		a.contents = mutate.Bytes(func(*rand.Rand) []byte { return []byte("match[]=up") })
	}
	switch what {
	case "OpenMetrics import":
		post(in.text, "/api/v1/import/prometheus", "application/openmetrics-text; version=1.0.0", func(rnd *rand.Rand) []byte { return mutate.Exposition(rnd, true) })
		a.contents = mutate.Expositions(true)
	case "protobuf push":
		post(in.push, "/metrics/job/mutant", "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited", mutate.Families)
		a.contents = mutate.AllFamilies()
	case "OTLP as JSON":
		body := func(*rand.Rand) []byte { return fmt.Appendf(nil, otlpJSON, time.Now().UnixNano()) }
		post(in.otlp, "/v1/metrics", "application/json", body)
		a.contents = mutate.JSON(body(nil))
	case "pull":
		get(shown, "/metrics", "/federate?match[]=up", "/federate?match[]=%7B__name__%3D~%22mutant.*%22%7D")
	case "page":
		get(page, "/", "/targets", "/api/v1/status", "/api/v1/targets", "/api/v1/config", "/metrics", "/-/reload", "/-/healthy")
	}
}
