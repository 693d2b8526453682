package hostile

import (
	"crypto/tls"
	"io"
	"net/http"
	"time"
)

// slowness is only wrong in time.
func slowness() []Behaviour {
	const late = "no answer within"
	is := func(name string, answer func(x *Exchange) bool) Behaviour {
		return Behaviour{Name: name, State: retrying, Says: late, answer: answer}
	}
	return []Behaviour{
		is("a hang before the answer", func(x *Exchange) bool { return x.store(true) && x.wait() }),
		is("a hang before the request is read", func(x *Exchange) bool { return x.wait() }),
		is("a hang inside the head", func(x *Exchange) bool {
			return x.store(true) && x.say("HTTP/1.1 204 No Content\r\nDate: Mo") && x.wait()
		}),
		is("a byte of the head a second", func(x *Exchange) bool {
			return x.store(true) && x.say("HTTP/1.1 204 No Con") && x.repeat("t", time.Second)
		}),
		is("a request read at a byte a second", func(x *Exchange) bool {
			for one := make([]byte, 1); ; {
				if _, err := x.Request.Body.Read(one); err != nil {
					return false
				}
				if gone(x.c, time.Second) {
					return false
				}
			}
		}),
		{Name: "answers after a second", Slow: true, answer: func(x *Exchange) bool { return !gone(x.c, time.Second) && x.accept() }},
	}
}

// gone waits, and reports whether the server had to cut the connection meanwhile.
func gone(c *conn, d time.Duration) bool {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		c.s.mu.Lock()
		_, there := c.s.conns[c.tcp]
		over := c.s.playing == nil
		c.s.mu.Unlock()
		if !there || over {
			return true
		}
	}
	return false
}

// breaks end the connection somewhere.
func breaks() []Behaviour {
	is := func(name string, answer func(x *Exchange) bool) Behaviour {
		return Behaviour{Name: name, State: retrying, answer: answer}
	}
	const unavailable = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
	return []Behaviour{
		{Name: "the port is closed", State: retrying, Says: "connection refused", shut: true},
		{Name: "a reset when connected", State: retrying, raw: func(c *conn) { c.reset() }},
		{Name: "closed when connected", State: retrying, raw: func(*conn) {}},
		{Name: "connected and never read", State: retrying, Says: "no answer within", raw: func(c *conn) { time.Sleep(20 * time.Millisecond); gone(c, time.Hour) }},
		is("closed after the request's head", func(*Exchange) bool { return false }),
		is("a reset inside the request", func(x *Exchange) bool {
			_, err := io.ReadFull(x.Request.Body, make([]byte, 10))
			return err == nil && x.reset()
		}),
		is("a reset after the request", func(x *Exchange) bool { return x.store(true) && x.reset() }),
		is("closed without an answer", func(x *Exchange) bool { return x.store(true) && false }),
		is("half-closed instead of an answer", func(x *Exchange) bool { return x.store(true) && x.c.tcp.CloseWrite() == nil && x.wait() }),
		is("closed inside the head", func(x *Exchange) bool { return x.store(true) && x.say("HTTP/1.1 204 No Cont") && false }),
		is("an answer before the request is read, and closed", func(x *Exchange) bool { return x.say(unavailable) && false }),
		{Name: "a success before the request is read", answer: func(x *Exchange) bool {
			// The answer claims exactly what will have been written.
			return x.store(false) && x.say("HTTP/1.1 204 No Content\r\n"+x.head()+"\r\n")
		}},
		{Name: "200, then closed", answer: func(x *Exchange) bool {
			return x.store(false) && x.say("HTTP/1.1 200 OK\r\n"+x.head()+"Content-Length: 0\r\n\r\n") && false
		}},
		{Name: "200, then a reset", answer: func(x *Exchange) bool {
			return x.store(true) && x.say("HTTP/1.1 200 OK\r\n"+x.head()+"Content-Length: 0\r\n\r\n") && !gone(x.c, 50*time.Millisecond) && x.reset()
		}},
		{Name: "the same answer twice", answer: func(x *Exchange) bool {
			return x.accept() && x.say("HTTP/1.1 204 No Content\r\n"+x.head()+"\r\n")
		}},
		{Name: "junk after the answer", answer: func(x *Exchange) bool { return x.accept() && x.say("\x00junk\r\n\r\n") }},
		{Name: "an answer to a request that was not sent", answer: func(x *Exchange) bool {
			return x.accept() && x.say("HTTP/1.1 500 Internal Server Error\r\nContent-Length: 4\r\n\r\noops")
		}},
	}
}

// others are servers that are not receivers.
func others() []Behaviour {
	page := func(name, head, body string) Behaviour {
		return Behaviour{Name: name, State: held, Says: "web page", answer: func(x *Exchange) bool { return x.status(http.StatusOK, head, body) }}
	}
	return []Behaviour{
		page("a login page", "Content-Type: text/html; charset=utf-8\r\nSet-Cookie: csrf=1\r\n", "<!DOCTYPE html>\n<html><head><title>Please log in</title></head><body><form></form></body></html>"),
		page("a captive portal", "", "\r\n\t<HTML><HEAD><TITLE>Welcome to the airport</TITLE></HEAD></HTML>"),
		{Name: "204 of a server that is no receiver", Swallows: true, answer: func(x *Exchange) bool { return x.status(http.StatusNoContent, "", "") }},
		{Name: "200 with JSON", Swallows: true, answer: func(x *Exchange) bool {
			return x.status(http.StatusOK, "Content-Type: application/json\r\n", `{"ok":true}`)
		}},
		{Name: "a mail server", State: retrying, Says: "malformed", raw: func(c *conn) { _ = c.say("220 mail.example ESMTP\r\n") && c.wait() }},
		{Name: "TLS on a port for HTTP", State: retrying, Says: "speaks TLS", raw: func(c *conn) { _ = c.say("\x15\x03\x01\x00\x02\x02\x46") && false }},
		{Name: "a wrong service that closes", State: retrying, raw: func(c *conn) { _ = c.say("bye\n") }},
	}
}

// handshakes fail, or never end. No request gets through any of them.
func handshakes() []Behaviour {
	cert := func(name, says string, of func(*Certs) tls.Certificate) Behaviour {
		return Behaviour{Name: name, Says: says, shake: func(conf *tls.Config, c *Certs) { conf.Certificates = []tls.Certificate{of(c)} }}
	}
	all := []Behaviour{
		cert("an expired certificate", "expired", func(c *Certs) tls.Certificate { return c.expired }),
		cert("a certificate of the future", "not valid yet", func(c *Certs) tls.Certificate { return c.future }),
		cert("a certificate for another host", "192.0.2.1", func(c *Certs) tls.Certificate { return c.otherHost }),
		cert("a self-signed certificate", "not trusted", func(c *Certs) tls.Certificate { return c.selfSigned }),
		cert("a certificate of an unknown authority", "not trusted", func(c *Certs) tls.Certificate { return c.otherCA }),
		{Name: "TLS 1.1", Says: "protocol version", shake: func(conf *tls.Config, _ *Certs) {
			conf.MinVersion, conf.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
		}},
		{Name: "a client certificate is demanded", Says: "certificate required", shake: func(conf *tls.Config, _ *Certs) { conf.ClientAuth = tls.RequireAnyClientCert }},
		{Name: "a client certificate is demanded by TLS 1.2", Says: "TLS", shake: func(conf *tls.Config, _ *Certs) {
			conf.ClientAuth, conf.MaxVersion = tls.RequireAnyClientCert, tls.VersionTLS12
		}},
		{Name: "no cipher in common", Says: "TLS", shake: func(conf *tls.Config, _ *Certs) {
			conf.MaxVersion, conf.CipherSuites = tls.VersionTLS12, []uint16{tls.TLS_RSA_WITH_AES_128_CBC_SHA}
		}},
		{Name: "HTTP on a port for TLS", Says: "does not speak TLS", raw: func(c *conn) {
			_ = c.say("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n") && c.wait()
		}},
		{Name: "a handshake that hangs", raw: func(c *conn) { c.wait() }},
		{Name: "a handshake of a byte a second", raw: func(c *conn) { _ = c.say("\x16\x03\x03\x40\x00") && c.repeat("\x02", time.Second) }},
		{Name: "garbage as a handshake", Says: "TLS", raw: func(c *conn) { _ = c.say("\xff\xff\xff\xff\xff\xff\xff\xff") && c.wait() }},
		{Name: "an alert as a handshake", Says: "TLS", raw: func(c *conn) { _ = c.say("\x15\x03\x03\x00\x02\x02\x28") && c.wait() }},
		{Name: "a reset inside the handshake", raw: func(c *conn) {
			_, err := io.ReadFull(c.tcp, make([]byte, 10))
			_ = err == nil && c.reset()
		}},
		{Name: "closed after the handshake", plain: func(*conn) {}},
	}
	for i := range all {
		all[i].Secure, all[i].State, all[i].Unseen = true, retrying, true
	}
	return append(all, Behaviour{Name: "503 over TLS", Secure: true, State: retrying, Says: "503", answer: func(x *Exchange) bool { return x.status(503, "", "") }})
}
