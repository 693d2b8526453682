package loopback

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestHost(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "LOCALHOST": true, "foo.localhost": true, "Foo.LocalHost": true, "127.0.0.1": true, "127.9.9.9": true,
		"::1": true, "[::1]": true, "::ffff:127.0.0.1": true,
		"": false, "0.0.0.0": false, "::": false, "10.0.0.1": false, "localhost.": false, "localhost.example.com": false, "notlocalhost": false, "127.0.0.1.example.com": false, "127.1": false,
	} {
		if got := Host(host); got != want {
			t.Errorf("Host(%q) = %v", host, got)
		}
		if got := Address(host); got {
			t.Errorf("Address(%q), without a port", host)
		}
		if strings.Contains(host, ":") && host[0] != '[' {
			host = "[" + host + "]"
		}
		if got := Address(host + ":9464"); got != want {
			t.Errorf("Address(%q) = %v", host+":9464", got)
		}
	}
}

func TestOnly(t *testing.T) {
	handler := Only(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for host, want := range map[string]int{
		"localhost:1": 200, "agent.localhost": 200, "[::1]:80": 200, "127.0.0.1": 200,
		"evil.example.com": 421, "evil.example.com:80": 421, "": 421, strings.Repeat("x", 5000): 421,
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Host = host
		w := httptest.NewRecorder()
		if handler.ServeHTTP(w, r); w.Code != want || w.Body.Len() > 300 {
			t.Errorf("Host %.20q: %d %s", host, w.Code, w.Body)
		}
	}
}
