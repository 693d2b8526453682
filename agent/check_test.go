package agent

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"hwsagent/agent/check"
)

// noEnv is an environment without variables.
func noEnv(string) (string, bool) { return "", false }

func discardLog() *log.Logger { return slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug) }

// write puts a file into the test's directory.
func write(t *testing.T, path, text string, mode os.FileMode) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil { // umask
		t.Fatal(err)
	}
	return path
}

// service returns a server of HTTPS that speaks no TLS later than most, and answers every request alike.
func service(t *testing.T, most uint16, code int, body string) string {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = w.Write([]byte(body))
	}))
	s.TLS = &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: most} // #nosec G402 -- a controller of 2012
	s.Config.ErrorLog = discardLog()
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL
}

// bmc answers each message that opens a session with a status of RMCP+ (IPMI 2.0, table 13-15); 0 answers nothing.
func bmc(t *testing.T, status byte) string {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() { _ = conn.Close(); <-ended })
	go func() {
		defer close(ended)
		b := make([]byte, 1024)
		for {
			n, from, err := conn.ReadFrom(b)
			if err != nil {
				return
			}
			if status == 0 || n < 17 {
				continue
			}
			_, _ = conn.WriteTo([]byte{6, 0, 0xff, 7, 6, 0x11, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, b[16], status}, from) // a lost answer is a lost packet
		}
	}()
	return conn.LocalAddr().String()
}

// lineServer answers each line with the same one, as an upsd that refuses does.
func lineServer(t *testing.T, answer string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() { _ = l.Close(); <-ended })
	go func() {
		defer close(ended)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			for in := bufio.NewScanner(conn); in.Scan(); {
				fmt.Fprintln(conn, answer)
			}
			_ = conn.Close()
		}
	}()
	return l.Addr().String()
}

// closedPort returns a port on which nothing listens.
func closedPort(t *testing.T) string {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.LocalAddr().String()
}

// check says why a device refuses, under the reason's name, and what to do.
func TestCheckExplainsRefusals(t *testing.T) {
	dir := t.TempDir()
	smartctl := write(t, filepath.Join(dir, "smartctl"), `case "$*" in *--scan*) echo '{"devices": [{"name": "/dev/sda"}]}';; *) echo '{"smartctl": {"exit_status": 2, "messages": [{"string": "Smartctl open device: /dev/sda failed: Permission denied"}]}}'; exit 2;; esac`, 0o600)
	missing := filepath.Join(dir, "secret")
	redfish := func(url, more string) string {
		return fmt.Sprintf("{type: redfish, target: %q, username: monitor, password: s3cr3tword%s}", url, more)
	}
	trusting := ", tls_config: {insecure_skip_verify: true}"
	ipmi := func(target string) string {
		return fmt.Sprintf("{type: ipmi, target: %q, username: monitor, password: s3cr3tword, packet_timeout: 100ms, retries: 0}", target)
	}
	for _, c := range []struct {
		name, entry string
		step        string
		text, try   string // a part of each
	}{
		{"tls of 2012", redfish(service(t, tls.VersionTLS10, 200, "{}"), ""), "tls", "write old_tls: true", "tls_config"},
		{"certificate", redfish(service(t, tls.VersionTLS13, 200, "{}"), ""), "tls", "write fingerprint: ", "tls_config"},
		{"password", redfish(service(t, tls.VersionTLS13, 401, "{}"), trusting), "login", "username or password is wrong", "lock an account"},
		{"locked account", redfish(service(t, tls.VersionTLS13, 401, `{"error": {"@Message.ExtendedInfo": [{"Message": "The account is locked."}]}}`), trusting), "login", "the account is locked: wait", "lock an account"},
		{"no redfish", redfish(service(t, tls.VersionTLS13, 404, ""), trusting), "protocol", "it is not a Redfish service", "of type redfish"},
		{"no name", redfish("https://bmc.invalid", ""), "name", "", "correct the host in target"},
		{"secret", fmt.Sprintf("{type: redfish, target: %q, username: m, password_file: %s%s}", service(t, tls.VersionTLS13, 200, "{}"), missing, trusting), "secret", "no such file", "let the agent's user read"},
		{"cipher suite", ipmi(bmc(t, 0x11)), "protocol", "set cipher_suite, or allow 17 or 3 in the BMC", "of type ipmi"},
		{"privilege", ipmi(bmc(t, 0x09)), "login", `"monitor" may not have the privilege user`, "lock an account"},
		{"sessions", ipmi(bmc(t, 0x01)), "protocol", "no session left", ""},
		{"silence", ipmi(bmc(t, 0)), "timeout", "IPMI over LAN is switched off", "UDP port 623"},
		{"port", fmt.Sprintf("{type: snmp, target: %q, retries: 0, packet_timeout: 200ms}", closedPort(t)), "refused", "no SNMP agent listens there", "switch the service on"},
		{"upsd", fmt.Sprintf("{type: nut, target: %q, username: monitor, password: s3cr3tword}", lineServer(t, "ERR ACCESS-DENIED")), "login", "upsd refuses this user or this address", "lock an account"},
		{"upsd without a certificate", fmt.Sprintf("{type: nut, target: %q, starttls: true}", lineServer(t, "ERR FEATURE-NOT-CONFIGURED")), "tls", "set CERTFILE in upsd.conf, or CERTPATH and CERTIDENT", "correct tls_config"},
		{"upsd without TLS", fmt.Sprintf("{type: nut, target: %q, starttls: true}", lineServer(t, "ERR FEATURE-NOT-SUPPORTED")), "tls", "built without TLS: remove starttls", "correct tls_config"},
		{"user of the agent", "{type: smart, command: [/bin/sh, " + smartctl + "]}", "read", "smartctl needs root", "permissions in docs/probes/smart.md"},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			if runtime.GOOS == "windows" && c.step == "read" {
				t.Skip("needs /bin/sh")
			}
			file := write(t, filepath.Join(t.TempDir(), "agent.yaml"), "probes:\n- "+c.entry+"\n", 0o600)
			r, err := Check(t.Context(), check.Options{ConfigFile: file, Level: check.Live, Env: noEnv})
			if err != nil {
				t.Fatal(err)
			}
			steps := r.Groups[len(r.Groups)-1].Steps
			if len(steps) != 1 || steps[0].Result != check.Fail || steps[0].Name != c.step || !strings.Contains(steps[0].Text, c.text) || !strings.Contains(steps[0].Try, c.try) {
				t.Errorf("%+v, want the step %s with %q, and to try %q", steps, c.step, c.text, c.try)
			}
			if all := fmt.Sprint(steps); strings.Contains(all, "s3cr3tword") {
				t.Errorf("a secret is shown: %s", all)
			}
		})
	}
}

func TestCheckProbe(t *testing.T) {
	file := write(t, filepath.Join(t.TempDir(), "agent.yaml"), "probes:\n  - {name: c, type: canary, series: 3}\n  - {name: off, type: canary, enabled: false}\n"+
		"  - {name: dead, type: snmp, target: \"127.0.0.1:1\", modules: [system], interval: 2s, timeout: 200ms, retries: 0, packet_timeout: 100ms}\n", 0o600)
	r, err := Check(t.Context(), check.Options{ConfigFile: file, Level: check.Live, Env: noEnv})
	if err != nil {
		t.Fatal(err)
	}
	results := map[string]check.Result{}
	for _, g := range r.Groups {
		if g.Kind == check.GroupProbe {
			results[g.Name] = g.Result
		}
	}
	if len(results) != 2 || results["c"] != check.OK || results["dead"] != check.Fail {
		t.Errorf("probes %v, want c ok and dead fail", results)
	}
}
