package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// The rigs are proven with hand-made requests, so that a failure of another test is
// the agent's.

func TestRigPrometheus(t *testing.T) {
	for _, tc := range []struct {
		window string
		late   int // the status for a sample older than the newest of its series
	}{{"", 400}, {"30m", 204}} {
		t.Run("window="+tc.window, func(t *testing.T) {
			t.Parallel()
			p := startPrometheus(t, tc.window)
			if status, text := post(t, httpClient(t), p.writeURL(), "", handMade(t, "rig", 2)); status != 204 {
				t.Fatalf("%d %s", status, text)
			}
			if v, ok := p.value("rig"); !ok || v != 2 {
				t.Errorf("rig is %v (%t), want 2", v, ok)
			}
			if status, text := post(t, httpClient(t), p.writeURL(), "", handMadeAt(t, time.Now().Add(-time.Second), "rig", 1)); status != tc.late {
				t.Errorf("a late sample: %d %s, want %d", status, text, tc.late)
			}
		})
	}
}

func TestRigNginx(t *testing.T) {
	p := startPrometheus(t, "")
	f := startFront(t, backends{plain: p, receive: p, self: p, tenant: [2]*prometheus{p, p}})
	ca, err := os.ReadFile(f.pki.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	with, err := f.pki.ClientTLS()
	if err != nil {
		t.Fatal(err)
	}
	client := func(c *tls.Config) *http.Client {
		return &http.Client{Transport: &http.Transport{TLSClientConfig: c, DisableKeepAlives: true}, Timeout: 10 * time.Second}
	}
	trusting := &tls.Config{RootCAs: pool}
	for i, tc := range []struct {
		name, url, token string
		tls              *tls.Config
		status           int
	}{
		{"plain", f.plain + "/api/v1/write", "", nil, 204},
		{"no path", f.plain, "", nil, 204},
		{"tenant 0", f.push + "/api/v1/push", f.tenantToken[0], trusting, 204},
		{"tenant 1", f.push + "/api/v1/push", f.tenantToken[1], trusting, 204},
		{"wrong token", f.push + "/api/v1/push", "wrong", trusting, 401},
		{"no token", f.push + "/api/v1/push", "", trusting, 401},
		{"certificate", f.mtls + "/api/v1/receive", "", with, 204},
		{"no certificate", f.mtls + "/api/v1/receive", "", trusting, 400},
		{"self-signed", f.self + "/api/v1/write", "", trusting, 0},
		{"self-signed, not verified", f.self + "/api/v1/write", "", &tls.Config{InsecureSkipVerify: true}, 204},
	} {
		status, text := post(t, client(tc.tls), tc.url, tc.token, handMade(t, "rig", 1, "case", fmt.Sprint(i)))
		if status != tc.status {
			t.Errorf("%s: %d %s, want %d", tc.name, status, text, tc.status)
		}
		if _, ok := p.value(fmt.Sprintf(`rig{case="%d"}`, i)); ok != (tc.status == 204) {
			t.Errorf("%s: stored = %t", tc.name, ok)
		}
	}
	log, err := os.ReadFile(f.accessLog)
	if err != nil || !strings.Contains(string(log), "client=CN=hwsagent-1") {
		t.Errorf("the access log does not name the client: %v\n%s", err, log)
	}
}

func TestRigSnmpd(t *testing.T) {
	snmpget := needs(t, "snmpget")
	addr := startSnmpd(t)
	const sysName = ".1.3.6.1.2.1.1.5.0"
	for name, args := range map[string][]string{
		"v2c":      {"-v2c", "-c", "public"},
		"authPriv": {"-v3", "-l", "authPriv", "-u", "privuser", "-a", "SHA-256", "-A", "authpass1234", "-x", "AES", "-X", "privpass1234"},
		"SHA-512":  {"-v3", "-l", "authPriv", "-u", "priv512", "-a", "SHA-512", "-A", "authpass1234", "-x", "AES-256", "-X", "privpass1234"},
	} {
		cmd := exec.Command(snmpget, append(args, "-m", "", addr, sysName)...)
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "e2e-device") {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
	out, err := exec.Command(snmpget, "-v2c", "-c", "wrong", "-r", "0", "-t", "1", "-m", "", addr, sysName).CombinedOutput()
	if err == nil {
		t.Errorf("a wrong community is let in:\n%s", out)
	}
}
