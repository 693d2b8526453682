package snmp

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/config"
	"github.com/prometheus/common/model"

	"hwsagent/probes"
)

// users of testdata/snmpd.conf.
var (
	plain  = Auth{Version: 3, Username: "plain"}
	signed = Auth{Version: 3, Username: "signed", AuthProtocol: "SHA", AuthPassword: "signed-pass"}
	sealed = Auth{Version: 3, Username: "sealed", AuthProtocol: "SHA256", AuthPassword: "sealed-auth", PrivProtocol: "AES", PrivPassword: "sealed-priv"}
	strong = Auth{Version: 3, Username: "strong", AuthProtocol: "SHA512", AuthPassword: "strong-auth", PrivProtocol: "AES256", PrivPassword: "strong-priv"}
)

func with(a Auth, change func(*Auth)) Auth {
	change(&a)
	return a
}

func TestLogin(t *testing.T) {
	d := startSnmpd(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("sealed-priv\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		auth Auth
		want string // in the error; "" is success
	}{
		{"v1", Auth{Version: 1, Community: "hwtest"}, ""},
		{"v2c", v2(), ""},
		{"v3 noAuthNoPriv", plain, ""},
		{"v3 authNoPriv SHA", signed, ""},
		{"v3 authPriv SHA256 AES", sealed, ""},
		{"v3 authPriv SHA512 AES256", strong, ""},
		{"v3 authPriv SHA512 AES256C", with(strong, func(a *Auth) { a.PrivProtocol = "AES256C" }), ""},
		{"v3 password from a file", with(sealed, func(a *Auth) { a.PrivPassword, a.PrivPasswordFile = "", secret }), ""},

		{"wrong community", Auth{Community: "guess"}, "a wrong community is met with silence"},
		{"unknown user", with(sealed, func(a *Auth) { a.Username = "nobody" }), `does not know the user "nobody"`},
		{"wrong password", with(sealed, func(a *Auth) { a.AuthPassword = "12345678" }), `password or auth_protocol (SHA256) is wrong for the user "sealed"`},
		{"wrong auth_protocol", with(sealed, func(a *Auth) { a.AuthProtocol = "SHA" }), "auth_protocol (SHA) is wrong"},
		{"wrong priv_password", with(sealed, func(a *Auth) { a.PrivPassword = "12345678" }), "most likely priv_password or priv_protocol is wrong"},
		{"wrong priv_protocol", with(sealed, func(a *Auth) { a.PrivProtocol = "DES" }), "priv_protocol"},
		{"level too low", with(sealed, func(a *Auth) { a.PrivPassword, a.PrivProtocol = "", "" }), "security level"},
		{"no auth for a user who needs it", with(plain, func(a *Auth) { a.Username = "signed" }), "security level"},
		{"no priv key there", with(signed, func(a *Auth) { a.PrivPassword = "12345678" }), "is not set up for security_level authPriv"},
		{"missing file", with(sealed, func(a *Auth) { a.PrivPassword, a.PrivPasswordFile = "", secret+"x" }), "read priv_password_file: open "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			// Silence is waited for; everything else may take its time on a busy machine.
			timeout := 5 * time.Second
			if strings.Contains(tc.name, "community") || strings.Contains(tc.name, "wrong priv") {
				timeout = 200 * time.Millisecond
			}
			for _, network := range []string{"udp", "tcp"} {
				p := newProbe(t, Config{
					Target: d.target(network), Auth: tc.auth, Modules: []string{"system"},
					PacketTimeout: model.Duration(timeout), Retries: new(int),
				})
				r, err := collect(t, p)
				if tc.want == "" {
					if err != nil {
						t.Fatalf("%s: %v", network, err)
					}
					if lines(r)[`sysName{sysName="bench-7"}`] != 1 {
						t.Errorf("%s: sysName is missing", network)
					}
					continue
				}
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("%s: error %v, want %q", network, err, tc.want)
				}
				if err != nil && strings.Contains(err.Error(), "12345678") {
					t.Errorf("%s: the error tells the password: %v", network, err)
				}
			}
		})
	}
}

// The round's end may come before the last retry; the error must not lose what is known.
func TestWrongPrivPasswordAtTheDeadline(t *testing.T) {
	d := startSnmpd(t)
	p := newProbe(t, Config{Target: d.target("udp"), Auth: with(sealed, func(a *Auth) { a.PrivPassword = "12345678" }), Modules: []string{"system"}})
	// Nothing is known where the machine is so busy that the device has not answered the first packet by then.
	for timeout := 300 * time.Millisecond; ; timeout *= 2 {
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		err := p.Collect(ctx, probes.NewRound(0))
		cancel()
		if err != nil && strings.Contains(err.Error(), "most likely priv_password") {
			return
		}
		if err == nil || timeout > 3*time.Second || !strings.Contains(err.Error(), "no answer") {
			t.Fatalf("error after %v: %v", timeout, err)
		}
	}
}

// A device whose board was replaced has a new engine ID. A client that keeps the old one is
// never answered again; the round after the change must succeed.
func TestEngineIDChanges(t *testing.T) {
	d := startSnmpd(t)
	for _, auth := range []Auth{plain, signed, sealed, strong} {
		t.Run(auth.Username, func(t *testing.T) {
			p := newProbe(t, Config{Target: d.target("udp"), Auth: auth, Modules: []string{"system"}, PacketTimeout: model.Duration(time.Second)})
			if _, err := collect(t, p); err != nil {
				t.Fatal(err)
			}
			was := p.session.engineID()
			for _, id := range []string{"0x80001f8803626f6172642d3032", "0x80001f8803626f6172642d3033"} {
				d.stop(t)
				d.start(t, id)
				r, err := collect(t, p)
				if err != nil {
					t.Fatal(err)
				}
				if lines(r)[`sysName{sysName="bench-7"}`] != 1 {
					t.Error("sysName is missing")
				}
				is := p.session.engineID()
				if is == was {
					t.Error("the engine ID did not change: the test proves nothing")
				}
				was = is
			}
		})
	}
}

func (s *session) engineID() string {
	return s.line.usm.AuthoritativeEngineID
}

// An agent that was restarted behind a kept TCP connection costs no round.
func TestRestartBehindTCP(t *testing.T) {
	d := startSnmpd(t)
	for _, auth := range []Auth{v2(), sealed} {
		p := newProbe(t, Config{Target: d.target("tcp"), Auth: auth, Modules: []string{"system", "if_mib"}})
		if _, err := collect(t, p); err != nil {
			t.Fatal(err)
		}
		kept := p.session.line
		if _, err := collect(t, p); err != nil {
			t.Fatal(err)
		}
		if p.session.line != kept {
			t.Error("the connection was not kept")
		}
		d.stop(t)
		d.start(t, "0x80001f8803687773746573743031")
		if _, err := collect(t, p); err != nil {
			t.Errorf("v%d: %v", auth.version(), err)
		}
		if p.session.line == kept {
			t.Error("the connection survived a restart: the test proves nothing")
		}
	}
}

func TestCommunityFileIsReadAgain(t *testing.T) {
	d := startSnmpd(t)
	file := filepath.Join(t.TempDir(), "community")
	put := func(s string) {
		if err := os.WriteFile(file, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("outdated")
	p := newProbe(t, Config{
		Target: d.target("udp"), Auth: Auth{CommunityFile: file}, Modules: []string{"system"},
		PacketTimeout: model.Duration(500 * time.Millisecond), Retries: new(int),
	})
	if _, err := collect(t, p); err == nil {
		t.Fatal("the outdated community was accepted")
	}
	put("hwtest\n")
	if _, err := collect(t, p); err != nil {
		t.Error(err)
	}
	put("  \n")
	if _, err := collect(t, p); err == nil || !strings.Contains(err.Error(), "is empty") {
		t.Errorf("error: %v", err)
	}
}

func TestSecretsAreNotPrinted(t *testing.T) {
	c := Config{Auth: Auth{Community: "canary-1", AuthPassword: "canary-2", PrivPassword: "canary-3"}}
	for _, s := range []config.Secret{c.Auth.Community, c.Auth.AuthPassword, c.Auth.PrivPassword} {
		b, err := s.MarshalJSON()
		if err != nil || strings.Contains(string(b), "canary") {
			t.Errorf("%s, %v", b, err)
		}
	}
}
