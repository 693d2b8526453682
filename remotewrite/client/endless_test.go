package client

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/internal/testnet"
	"hwsagent/remotewrite/config"
)

// memConns is a network in memory on which each connection is served by hand.
type memConns struct {
	serve  func(c net.Conn)
	served sync.WaitGroup

	mu    sync.Mutex
	dials int
}

// dial implements DialFunc.
func (n *memConns) dial(context.Context, string, string) (net.Conn, error) {
	n.mu.Lock()
	n.dials++
	n.mu.Unlock()
	client, server := net.Pipe()
	s := testnet.NewSocket(server, &n.served)
	n.served.Go(func() {
		defer s.Close()
		n.serve(s)
	})
	return client, nil
}

// count is how many connections there were.
func (n *memConns) count() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dials
}

// onRequest reads a request, answers it, and waits until the client closes the connection.
func onRequest(answer func(c net.Conn)) func(c net.Conn) {
	return func(c net.Conn) {
		req, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, req.Body)
		answer(c)
		_, _ = io.Copy(io.Discard, c)
	}
}

// answering answers with a text and leaves the connection open.
func answering(text string) func(c net.Conn) {
	return func(c net.Conn) { _, _ = io.WriteString(c, text) }
}

// dripsAfter answers with a text and then one byte a second.
func dripsAfter(text string) func(c net.Conn) {
	return func(c net.Conn) {
		_, err := io.WriteString(c, text)
		for ; err == nil; time.Sleep(time.Second) {
			_, err = io.WriteString(c, "x")
		}
	}
}

// endlessAnswers are answers that do not end, each with the status that it has; 0: the head
// does not end. All of them leave the connection open.
func endlessAnswers() map[string]struct {
	answer func(c net.Conn)
	status int
} {
	type one = struct {
		answer func(c net.Conn)
		status int
	}
	const switching = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"
	all := map[string]one{
		"101":                       {answering(switching), 101},
		"101 that drips":            {dripsAfter(switching), 101},
		"no answer":                 {answering(""), 0},
		"the head hangs":            {answering("HTTP/1.1 200 OK\r\nDa"), 0},
		"the head drips":            {dripsAfter("HTTP/1.1 200 OK\r\nDa"), 0},
		"informational, then hangs": {answering("HTTP/1.1 103 Early Hints\r\n\r\n"), 0},
	}
	for _, status := range []int{200, 307, 401, 503} {
		line := fmt.Sprintf("HTTP/1.1 %d %s\r\n", status, http.StatusText(status))
		all[fmt.Sprint(status, ", the body hangs")] = one{answering(line + "Content-Length: 9\r\n\r\nbegin"), status}
		all[fmt.Sprint(status, ", the body drips")] = one{dripsAfter(line + "Content-Length: 4000\r\n\r\n"), status}
		all[fmt.Sprint(status, ", chunks drip")] = one{dripsAfter(line + "Transfer-Encoding: chunked\r\n\r\nfff\r\n"), status}
		all[fmt.Sprint(status, ", drips without a length")] = one{dripsAfter(line + "\r\n"), status}
	}
	return all
}

// TestNoAnswerHangs: whether a receiver, a proxy or a token endpoint answers, and in whatever way
// the answer does not end, a request ends within its time limit, and at once when its context
// ends.
func TestNoAnswerHangs(t *testing.T) {
	const token = "{url: http://h.example/, remote_timeout: 7s, oauth2: {client_id: a, client_secret: CANARY, token_url: 'http://idp.example/token'}}"
	jwt := "{url: http://h.example/, remote_timeout: 7s, oauth2: {client_id: a, grant_type: '" + config.GrantJWT + "', client_certificate_key_file: key.pem, token_url: 'http://idp.example/token'}}"
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	dir := testnet.WriteFiles(t, map[string]string{"key.pem": string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))})
	for who, text := range map[string]string{
		"receiver":                 "{url: http://h.example/, remote_timeout: 7s}",
		"receiver behind a proxy":  "{url: http://h.example/, remote_timeout: 7s, proxy_url: http://p.example:3128/}",
		"CONNECT":                  "{url: https://h.example/, remote_timeout: 7s, proxy_url: http://p.example:3128/}",
		"token endpoint":           token,
		"token endpoint for a JWT": jwt,
	} {
		for name, one := range endlessAnswers() {
			for _, stopped := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %s, stopped %t", who, name, stopped), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						n := &memConns{serve: onRequest(one.answer)}
						defer n.served.Wait()
						c := newClient(t, text, dir, Options{Dial: n.dial})
						defer c.Close()
						ctx, cancel := context.WithCancel(t.Context())
						defer cancel()
						limit := 7 * time.Second
						if strings.HasPrefix(who, "token") {
							limit = tokenTimeout
						}
						limit += drainLimit
						if stopped {
							limit = time.Second
							time.AfterFunc(limit, cancel)
						}
						began := time.Now()
						a := c.Send(ctx, Request{Body: []byte("x")})
						if took := time.Since(began); took > limit {
							t.Errorf("it took %s, more than %s: %s", took, limit, a)
						}
						if n.count() == 0 {
							t.Error("nobody was asked")
						}
						if one.status == http.StatusSwitchingProtocols {
							if v := Judge(a, config.Policy{}).Verdict; v != Hold {
								t.Errorf("101 is %s, want %s: %s", v, Hold, a)
							}
							if !strings.Contains(a.String(), "101 Switching Protocols") || !strings.Contains(a.String(), "WebSocket") {
								t.Errorf("a person reads %q", a)
							}
						}
						cancel()
					})
				})
			}
		}
	}
}
