package redfish

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/probes"
)

func TestTLS(t *testing.T) {
	m := newMock(t, "rackmount1.json")
	try := func(change func(*Config)) error {
		c := m.config()
		change(&c)
		_, err := collect(t, newProbe(t, c))
		return err
	}
	has := func(err error, words ...string) {
		t.Helper()
		for _, w := range words {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%v, want %q", err, w)
			}
		}
	}
	unknown := try(func(c *Config) { c.Fingerprint = "" })
	has(unknown, "tls_config.ca_file", "write fingerprint: "+m.config().Fingerprint)
	has(try(func(c *Config) { c.Fingerprint = strings.Repeat("0", 64) }), "not the configured one", m.config().Fingerprint)
	has(try(func(c *Config) { c.Target = strings.Replace(c.Target, "https", "http", 1); c.Fingerprint = "" }), "https")
	has(try(func(c *Config) {
		c.Fingerprint, c.TLSConfig, c.TLSConfig.ServerName = "", caOf(m.caFile(t)), "bmc.example.org.invalid"
	}), "tls_config.server_name")
	if err := try(func(c *Config) { c.Fingerprint, c.TLSConfig = "", caOf(m.caFile(t)) }); err != nil {
		t.Error(err)
	}
	// A CA that is put right is read again.
	ca := m.caFile(t)
	good, _ := os.ReadFile(ca)
	stranger, err := os.ReadFile("testdata/stranger.pem")
	if err != nil {
		t.Fatal(err)
	}
	_ = os.WriteFile(ca, stranger, 0o600)
	c := m.config()
	c.Fingerprint, c.TLSConfig = "", caOf(ca)
	p := newProbe(t, c)
	_, err = collect(t, p)
	has(err, "tls_config.ca_file")
	_ = os.WriteFile(ca, good, 0o600)
	p.contact.Ask()
	_, _ = collect(t, p)
	p.contact.Ask()
	if _, err := collect(t, p); err != nil {
		t.Errorf("with the right CA: %v", err)
	}

	m = newMock(t, "rackmount1.json", oldServer)
	has(try(func(*Config) {}), "old_tls: true", "2012")
	if err := try(func(c *Config) { c.OldTLS = true }); err != nil {
		t.Errorf("with old_tls: %v", err)
	}
}

// TestSlow: answers that do not come cost themselves, and soon the round, but never more than the time of the round.
func TestSlow(t *testing.T) {
	for _, c := range []struct {
		name    string
		hangs   string // what paths have whose answers do not come
		round   time.Duration
		err     string
		took    time.Duration // at most
		partial bool
		there   string
	}{
		{"one", "Sensors/AmbientTemp", time.Hour, "no answer within 10s", 10 * time.Second, true, "IntakeTemp"},
		{"many", "/Sensors/", time.Hour, "requests of this round had no answer within 10s", 20 * time.Second, false, "hwsagent_device_up 1"},
		{"all", "/redfish", time.Hour, "no answer within 10s", 10 * time.Second, false, `reason="timeout"`},
		{"the login", "/Sessions", time.Hour, "no answer within 10s", 10 * time.Second, false, `reason="timeout"`},
		{"the round", "/Sensors/", 5 * time.Second, "the time of this round is over", 5 * time.Second, false, "hwsagent_device_up 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, hung := newMock(t, "rackmount1.json", nil), 0
				m.before = func(_ http.ResponseWriter, r *http.Request) bool {
					if !strings.Contains(r.URL.Path, c.hangs) {
						return false
					}
					m.mu.Lock()
					hung++
					m.mu.Unlock()
					<-r.Context().Done()
					return true
				}
				p := inProcessProbe(t, m, Config{})
				start, round := time.Now(), probes.NewRound(0)
				ctx, cancel := context.WithTimeout(t.Context(), c.round)
				defer cancel()
				err := p.Collect(ctx, round)
				if took := time.Since(start); err == nil || !strings.Contains(err.Error(), c.err) || errors.Is(err, probes.ErrPartial) != c.partial || took > c.took || hung == 0 {
					t.Errorf("after %s, with %d that hung: %v", took, hung, err)
				}
				if lines := linesOf(round); with(lines, c.there) == 0 {
					t.Errorf("%q is missing:\n%s", c.there, strings.Join(lines, "\n"))
				}
			})
		})
	}
}

func TestMaxRequests(t *testing.T) {
	m := newMock(t, "rackmount1.json")
	c := m.config()
	c.MaxRequests = 20
	if _, err := collect(t, newProbe(t, c)); err == nil || !strings.Contains(err.Error(), "max_requests") {
		t.Error(err)
	}
}
