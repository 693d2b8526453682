package receivers_test

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"testing"
	"time"

	"hwsagent/receivers"
	"hwsagent/receivers/receivertest"
)

// TestMoveOnOnePort: a receiver moves from one address to another of the same port while it
// runs; nobody else gets the port by that, and a port that another program has stays refused.
func TestMoveOnOnePort(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("a restart does it here")
	}
	l := &receivertest.Log{}
	set := receivers.NewSet(slog.New(slog.DiscardHandler))
	apply := func(listen string) error {
		p, err := set.Plan([]receivers.Spec{{
			Name: "x", Identity: listen, Listen: listen, Insecure: true, Gate: l.Gate("x", receivers.DefaultLimits()),
			Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, listen) }),
		}})
		if err == nil {
			set.Apply(p)
		}
		return err
	}
	if err := apply("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		set.Run(t.Context())
	}()
	t.Cleanup(func() { <-done })
	_, port, err := net.SplitHostPort(set.Status()[0].Address)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
	for _, host := range []string{"0.0.0.0", "127.0.0.1", "localhost", "[::]", "127.0.0.1"} {
		address := host + ":" + port
		if err := apply(address); err != nil {
			t.Fatalf("%s: %v", address, err)
		}
		resp, err := client.Get("http://127.0.0.1:" + port)
		if err != nil {
			t.Fatalf("%s: %v", address, err)
		}
		said, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || string(said) != address {
			t.Errorf("%s: %q answers, %v", address, said, err)
		}
		if other, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			other.Close()
			t.Errorf("%s: another one may listen there, too", address)
		}
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	if apply(taken.Addr().String()) == nil {
		t.Error("a port that another one has is taken")
	}
}
