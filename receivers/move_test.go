package receivers_test

import (
	"context"
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

// TestMoveOnOnePort: a receiver moves from one address to another of the same port while it runs; no other program can
// take the port meanwhile, and a port of another program stays refused.
func TestMoveOnOnePort(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("a restart does it here")
	}
	l := &receivertest.Log{}
	set := receivers.NewSet(slog.New(slog.DiscardHandler), time.Second)
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

// A stop can overtake a reload: the set is closed between Plan and Apply. Whether the plan opens
// a socket of its own or takes one over, nothing of it runs afterwards and no socket stays open.
func TestApplyAfterClose(t *testing.T) {
	for _, tc := range []struct {
		name         string
		first, after string // the identities of the receiver before and in the plan, "" for none
		moves        bool   // to another address
	}{
		{"takes a socket over", "a", "b", false},
		{"opens a socket", "a", "b", true},
		{"opens the first socket", "", "b", true},
		{"unchanged", "a", "a", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := &receivertest.Log{}
			set := receivers.NewSet(slog.New(slog.DiscardHandler), time.Second)
			plan := func(identity, listen string) *receivers.Plan {
				t.Helper()
				p, err := set.Plan([]receivers.Spec{{
					Name: "x", Identity: identity, Listen: listen, Gate: l.Gate("x", receivers.DefaultLimits()),
					Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}),
				}})
				if err != nil {
					t.Fatal(err)
				}
				return p
			}
			at, other := free(t), free(t)
			if tc.first != "" {
				set.Apply(plan(tc.first, at))
			}
			ctx, cancel := context.WithCancel(t.Context())
			ran := make(chan struct{})
			go func() {
				defer close(ran)
				set.Run(ctx)
			}()
			defer cancel()
			listen := at
			if tc.moves {
				listen = other
			}
			late := plan(tc.after, listen)
			cancel()
			<-ran
			set.Apply(late)
			if s := set.Status(); len(s) != 0 {
				t.Errorf("after Close there are receivers: %+v", s)
			}
			for _, address := range []string{at, other} {
				if c, err := net.Dial("tcp", address); err == nil {
					c.Close()
					t.Errorf("%s still accepts connections", address)
				}
			}
		})
	}
}

// free returns an address on which nothing listens.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
