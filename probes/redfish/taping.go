package redfish

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/config"

	"hwsagent/probes"
	"hwsagent/probes/tape"
)

// taping records the resources that are read, by their paths. It does not record logins.
type taping struct {
	next http.RoundTripper
	tape *tape.Tape
}

// RoundTrip implements [http.RoundTripper].
func (t taping) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(req)
	if err != nil || req.Method != http.MethodGet || resp.StatusCode == http.StatusUnauthorized {
		return resp, err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	_ = resp.Body.Close() // everything needed has been read
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	if len(body) <= maxBody {
		t.tape.Add(req.URL.RequestURI(), statusWord(resp.StatusCode), body)
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// CloseIdleConnections is called by [http.Client.CloseIdleConnections].
func (t taping) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

func statusWord(code int) string {
	if code == http.StatusOK {
		return tape.OK
	}
	return strconv.Itoa(code)
}

// Record reads the service once, as Collect does, and records the resources. It must be the first to read.
func (p *Probe) Record(ctx context.Context, t *tape.Tape) error {
	s, err := newService(&p.config, p.pace, time.Now)
	if err != nil {
		return err
	}
	p.service = s
	return p.recordThrough(ctx, t, s.client.http.Transport)
}

func (p *Probe) recordThrough(ctx context.Context, t *tape.Tape, next http.RoundTripper) error {
	p.service.client.http.Transport = taping{next, t}
	return p.Collect(ctx, probes.NewRound(0))
}

// Redact finds the texts that identify the owner of the machine.
func (p *Probe) Redact(t *tape.Tape, r *tape.Redactor) {
	if base, err := parseTarget(p.config.Target); err == nil {
		r.Learn(tape.Names, base.Hostname())
	}
	r.LearnAccount(p.config.Username)
	for i := range t.Exchanges {
		r.LearnJSON(t.Exchanges[i].Answer, identity)
	}
}

// identity returns the kind of a property by its name, for DMTF's schemas and those of vendors.
func identity(parent, key string) string {
	switch low := strings.ToLower(key); {
	case strings.Contains(low, "serialnumber"), strings.Contains(low, "servicetag"), strings.Contains(low, "uuid"), strings.Contains(low, "wwn"), strings.Contains(low, "wwpn"), strings.Contains(low, "worldwidename"),
		strings.HasSuffix(low, "assettag"), low == "sku", low == "durablename", low == "nodeid", low == "expressservicecode", low == "sparepartserialnumber", low == "nguid", low == "eui64":
		return tape.Serials
	case low == "hostname", low == "fqdn", low == "username", low == "domainname", strings.HasPrefix(low, "contact"), parent == "PostalAddress", parent == "Placement", low == "phonenumber", low == "latitude", low == "longitude":
		return tape.Names
	}
	return ""
}

// playing answers from a recording.
type playing struct{ player *tape.Player }

// RoundTrip implements [http.RoundTripper].
func (t playing) RoundTrip(req *http.Request) (*http.Response, error) {
	code, body := http.StatusNotFound, []byte("{}")
	if req.Method == http.MethodGet {
		if e, ok := t.player.Next(req.URL.RequestURI()); ok {
			body, code = e.Answer, http.StatusOK
			if e.Status != tape.OK {
				n, err := strconv.Atoi(e.Status)
				if err != nil || n < 200 || n > 599 {
					return nil, fmt.Errorf("the recording has the status %.20q, which is none of HTTP", e.Status)
				}
				code = n
			}
		}
	}
	return &http.Response{StatusCode: code, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: req}, nil
}

// Replay returns a probe that reads the service of a recording.
func Replay(t *tape.Tape) (*Probe, error) {
	p, err := New(Config{Target: "recording.invalid", Username: "recording", Password: config.Secret("recording"), Auth: AuthBasic}, nil, nil)
	if err != nil {
		return nil, err
	}
	if p.service, err = newService(&p.config, nil, time.Now); err != nil {
		return nil, err
	}
	p.service.client.http.Transport = playing{t.Player()}
	return p, nil
}
