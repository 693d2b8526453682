package nut

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/common/config"

	"hwsagent/probes/devices"
)

// authority makes a database of NSS, which Debian's upsd reads its certificate from, with a CA and a certificate for 127.0.0.1 in it. It returns
// the database's password and the file of the CA.
func authority(t *testing.T, dir string) (password, ca string) {
	t.Helper()
	certutil := needProgram(t, "certutil")
	password = "word of the database"
	noise := make([]byte, 64)
	_, _ = rand.Read(noise) // crypto/rand.Read never fails
	for name, text := range map[string][]byte{"password": []byte(password + "\n"), "noise": noise} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(answers string, args ...string) []byte {
		t.Helper()
		cmd := exec.Command(certutil, append(args, "-d", "sql:"+dir, "-f", filepath.Join(dir, "password"), "-z", filepath.Join(dir, "noise"))...) // #nosec G204 -- the test's own words
		cmd.Stdin = strings.NewReader(answers)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("certutil %q: %v: %s", args, err, stderr.String())
		}
		return out
	}
	run("", "-N")
	run("y\n0\nn\n", "-S", "-n", "ca", "-s", "CN=test CA", "-x", "-t", "CT,,", "-m", "1", "-2", "--keyUsage", "certSigning,critical") // a CA, without CAs below it, not critical
	run("", "-S", "-n", "server", "-s", "CN=upsd", "-c", "ca", "-t", ",,", "-m", "2", "--extSAN", "ip:127.0.0.1")
	ca = filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(ca, run("", "-L", "-n", "ca", "-a"), 0o600); err != nil {
		t.Fatal(err)
	}
	return password, ca
}

// TestClientCertificate: an upsd that demands a certificate gets the configured one. Without it, or with one that upsd does not trust, the error says
// what is missing. Debian's upsd is built without that demand (CERTREQUEST of upsd.conf).
func TestClientCertificate(t *testing.T) {
	files := func(conf *tls.Config) (cert, key string) {
		t.Helper()
		der, err := x509.MarshalPKCS8PrivateKey(conf.Certificates[0].PrivateKey)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
		for file, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: conf.Certificates[0].Certificate[0]}, key: {Type: "PRIVATE KEY", Bytes: der}} {
			if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return cert, key
	}
	own, _ := certificate(t)
	cert, key := files(own)
	stranger, _ := certificate(t)
	strangeCert, strangeKey := files(stranger)
	trusted, err := x509.ParseCertificate(own.Certificates[0].Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		conf, ca := certificate(t)
		conf.MinVersion, conf.MaxVersion = version, version
		conf.ClientAuth, conf.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
		conf.ClientCAs.AddCert(trusted)
		u := &upsd{answer: of(map[string]string{"demo": demo(t)}), secure: conf}
		u.serve(t)
		for name, c := range map[string]struct {
			tls   config.TLSConfig
			reads bool
		}{
			"trusted": {config.TLSConfig{CAFile: ca, CertFile: cert, KeyFile: key}, true}, "none": {config.TLSConfig{CAFile: ca}, false},
			"not trusted": {config.TLSConfig{CAFile: ca, CertFile: strangeCert, KeyFile: strangeKey}, false},
		} {
			got, err := round(t, newProbe(t, Config{Target: u.address, StartTLS: true, TLSConfig: &c.tls}))
			switch {
			case c.reads && (err != nil || !strings.Contains(got, "hw_battery_charge_ratio")):
				t.Errorf("%s, %s: %v\n%s", tls.VersionName(version), name, err, got)
			case !c.reads && (err == nil || !strings.Contains(err.Error(), "set tls_config.cert_file and key_file") || reasonOf(err) != devices.TLS || strings.Contains(got, "hw_battery")):
				t.Errorf("%s, %s: %v (%v)\n%s", tls.VersionName(version), name, err, reasonOf(err), got)
			}
		}
	}
}

// TestUpsdTLS reads Debian's upsd with and without encryption, and has it refused for each reason that a user can meet.
func TestUpsdTLS(t *testing.T) {
	server, driver := needProgram(t, "/lib/nut/upsd", "upsd"), needProgram(t, "/lib/nut/dummy-ups")
	dir, other := t.TempDir(), t.TempDir()
	password, ca := authority(t, dir)
	_, stranger := authority(t, other)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	port := address[strings.LastIndexByte(address, ':')+1:]
	for name, text := range map[string]string{
		"ups.conf": "[demo]\n driver = dummy-ups\n port = demo.dev\n", "upsd.users": "", "demo.dev": demo(t),
		"upsd.conf": fmt.Sprintf("LISTEN 127.0.0.1 %s\nMAXAGE 15\nCERTPATH %s\nCERTIDENT server \"%s\"\nDISABLE_WEAK_SSL true\n", port, dir, password),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	played := start(t, dir, driver, "-a", "demo", "-u", "root", "-D")
	waitFor(t, played, func() bool { _, err := os.Stat(filepath.Join(dir, "dummy-ups-demo")); return err == nil })
	daemon := start(t, dir, server, "-D", "-u", "root")
	plain := Config{Target: address}
	waitFor(t, daemon, func() bool {
		got, _ := round(t, newProbe(t, plain))
		return strings.Contains(got, prefix+"ups_temperature{")
	})
	encrypted := func(c config.TLSConfig) Config {
		return Config{Target: address, StartTLS: true, TLSConfig: &c, Username: "a", Password: "b"}
	}
	for _, c := range []struct {
		name   string
		config Config
		want   string // a part of the error; "" if it is read
	}{
		{"plain", plain, ""},
		{"verified", encrypted(config.TLSConfig{CAFile: ca}), ""},
		{"by name", encrypted(config.TLSConfig{CAFile: ca, ServerName: "127.0.0.1"}), ""},
		{"another CA", encrypted(config.TLSConfig{CAFile: stranger}), "unknown authority"},
		{"the CAs of the system", encrypted(config.TLSConfig{}), "write the file of the CA that signed upsd's certificate in tls_config.ca_file"},
		{"another name", encrypted(config.TLSConfig{CAFile: ca, ServerName: "ups.example"}), "or in tls_config.server_name"},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			got, err := round(t, newProbe(t, c.config))
			switch {
			case c.want == "" && (err != nil || !strings.Contains(got, "hw_battery_charge_ratio")):
				t.Errorf("%v\n%s", err, got)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || reasonOf(err) != devices.TLS || strings.Contains(got, "hw_battery")):
				t.Errorf("%v (%v), want %q\n%s", err, reasonOf(err), c.want, got)
			}
		})
	}
}
