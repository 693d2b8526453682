package web

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"
)

// More clients than the page has connections wait; they are served when others end.
func TestConnectionsAreBounded(t *testing.T) {
	s, err := New(Options{Listen: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	var held []net.Conn
	for range maxConnections {
		c, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, c)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 500 * time.Millisecond}
	url := "http://" + s.Addr().String() + "/-/healthy"
	if resp, err := client.Get(url); err == nil {
		_ = resp.Body.Close()
		t.Error("a client is served beyond the bound")
	}
	for _, c := range held {
		_ = c.Close()
	}
	client.Timeout = 30 * time.Second
	resp, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
