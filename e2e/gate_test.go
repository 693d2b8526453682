package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/golang/snappy"
)

// gate stands before a real receiver: it can be away, and it can keep back the answer of a
// request that the receiver has stored. It notes what the receiver answered.
type gate struct {
	t    *testing.T
	addr string
	to   *url.URL

	server  *http.Server
	serving sync.WaitGroup
	client  *http.Client

	mu      sync.Mutex
	answers map[int]int // by status
	kept    int         // answers that were kept back
	keeping bool
	types   map[string]int // requests that are not empty by Content-Type
}

func newGate(t *testing.T, to string) *gate {
	t.Helper()
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	// The port is one of the test's own: while the gate is down, the system would give another to the next listener.
	g := &gate{t: t, addr: fmt.Sprintf("127.0.0.1:%d", freePort(t)), to: u, client: httpClient(t), answers: make(map[int]int), types: make(map[string]int)}
	g.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	g.up()
	t.Cleanup(g.down)
	return g
}

// up makes the gate listen, on the same port each time.
func (g *gate) up() {
	g.t.Helper()
	l, err := net.Listen("tcp", g.addr)
	if err != nil {
		g.t.Fatal(err)
	}
	g.addr = l.Addr().String()
	srv := &http.Server{Handler: http.HandlerFunc(g.handle), ReadHeaderTimeout: 10 * time.Second}
	g.server = srv
	g.serving.Go(func() {
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			g.t.Errorf("the gate ended: %v", err)
		}
	})
}

// down closes the port and cuts the connections.
func (g *gate) down() {
	_ = g.server.Close()
	g.serving.Wait()
}

// leave closes the port when all requests have their answers, so that the agent knows what
// the receiver has stored.
func (g *gate) leave() {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), 20*time.Second)
	defer cancel()
	if err := g.server.Shutdown(ctx); err != nil {
		g.t.Fatal(err)
	}
	g.serving.Wait()
}

// keep makes the gate keep back all answers, or pass them on again.
func (g *gate) keep(on bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.keeping = on
}

// keptBack returns how many answers were kept back.
func (g *gate) keptBack() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.kept
}

// counts returns the receiver's answers by status, and the requests that are not empty by
// Content-Type: an empty one may be of 1.0 as long as 2.0 is not proven to be understood.
func (g *gate) counts() (answers map[int]int, types map[string]int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return maps.Clone(g.answers), maps.Clone(g.types)
}

// url returns where the agent writes to.
func (g *gate) url() string { return "http://" + g.addr + g.to.Path }

func (g *gate) handle(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // cut by down, or the agent was killed
	}
	req, err := http.NewRequest(r.Method, g.to.String(), bytes.NewReader(body)) //nolint:noctx // the receiver gets it whole, even if the agent is killed meanwhile
	if err != nil {
		g.t.Error(err)
		return
	}
	req.Header = r.Header.Clone()
	resp, err := g.client.Do(req)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway) // the receiver is being stopped
		return
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	const emptyMessage = 4 // bytes at most, of either version
	size, err := snappy.DecodedLen(body)
	if err != nil {
		g.t.Errorf("a body is not snappy: %v", err)
	}
	if g.note(r.Header.Get("Content-Type"), size <= emptyMessage, resp.StatusCode) {
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	}
	maps.Copy(w.Header(), resp.Header)
	w.WriteHeader(resp.StatusCode)
	_, _ = w.Write(text) // the agent was killed
}

// note counts an answer, and says whether it is to be kept back.
func (g *gate) note(contentType string, empty bool, status int) (keep bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.answers[status]++
	if !empty {
		g.types[contentType]++
	}
	if g.keeping {
		g.kept++
	}
	return g.keeping
}
