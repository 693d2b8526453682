package e2e

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"hwsagent/agent/demo/receiver"
)

// canaryAgent returns the agent with the configuration in which each key that can hold a secret
// holds one, and what must not show of its files.
func canaryAgent(t *testing.T, e *echo, file string) (a *agent, secrets []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "agent", "config", "testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	plain := httptest.NewServer(e)
	t.Cleanup(plain.Close)
	dir := t.TempDir()
	pki, err := receiver.NewPKI(dir)
	if err != nil {
		t.Fatal(err)
	}
	secure := httptest.NewUnstartedServer(e)
	secure.TLS = pki.ServerTLS()
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	// Azure's library asks only over https, and first where the token endpoint is.
	login := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tenant, ok := strings.CutSuffix(r.URL.Path, "/v2.0/.well-known/openid-configuration")
		if !ok {
			e.ServeHTTP(w, r)
			return
		}
		at := "https://" + r.Host + tenant
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"issuer": %q, "authorization_endpoint": %q, "token_endpoint": %q}`, at+"/v2.0", at+"/oauth2/v2.0/authorize", at+"/oauth2/v2.0/token")
	}))
	own, err := receiver.NewPKI(t.TempDir()) // trusted by the agent as one of the system's, unlike that of the receivers
	if err != nil {
		t.Fatal(err)
	}
	login.TLS = own.ServerTLS()
	login.TLS.ClientAuth = tls.NoClientCert
	login.Config.ErrorLog = secure.Config.ErrorLog
	login.StartTLS()
	t.Cleanup(login.Close)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	signing := string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
	read := func(name string) string {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for _, name := range []string{"community", "auth", "priv", "header", "bearer", "credentials", "user", "password", "client-secret", "path-token", "argument"} {
		writeFile(t, filepath.Join(dir, name), "CANARY-file-"+name+"\n")
	}
	web := writeFile(t, filepath.Join(dir, "web.yml"), "tls_server_config: {cert_file: server.pem, key_file: server.key}\nbasic_auth_users: {sender: $2a$04$IUl8PuF2eY.RPNhpNvNqyueEd2LWUKWAcZE9vsI01hCFsT.3EhFne}\n")
	secrets = append(secrets, "IUl8PuF2eY.RPNhpNvNqyueEd2LWUKWAcZE9vsI01hCFsT.3EhFne")
	writeFile(t, filepath.Join(dir, "two-lines"), "CANARY-first\nCANARY-second\n")
	writeFile(t, filepath.Join(dir, "not-a-key"), "-----BEGIN PRIVATE KEY-----\nCANARYCANARY\n-----END PRIVATE KEY-----\n")
	writeFile(t, filepath.Join(dir, "rsa.key"), "CANARY-key\n"+signing)
	self := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(365 * 24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, self, self, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "app.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	account, err := json.Marshal(map[string]string{"type": "service_account", "client_email": "a@b", "private_key": signing, "token_uri": plain.URL + "/notoken"})
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "google.json"), string(account))
	kubeConfigs(t, dir, plain.URL, secure.URL, e.proxy(t), read(pki.CertFile), read(pki.KeyFile))
	for _, text := range []string{read(pki.KeyFile), signing} {
		for _, line := range strings.Split(text, "\n") {
			if len(line) > 40 && !strings.HasPrefix(line, "-") {
				secrets = append(secrets, line)
			}
		}
	}
	quote := func(s string) string { return strings.ReplaceAll(s, "\n", `\n`) }
	config := strings.NewReplacer(
		"WEBFILE", web, "PORT1", strconv.Itoa(freePort(t)), "PORT2", strconv.Itoa(freePort(t)), "DEVICE", e.device(t),
		"ECHO", plain.Listener.Addr().String(), "SECURE", secure.Listener.Addr().String(), "PROXY", e.proxy(t), "DIR", dir,
		"PEMCERT", `"`+quote(read(pki.CertFile))+`"`, "PEMKEY", quote(read(pki.KeyFile)), "PEMRSA", quote(signing),
	).Replace(string(text))
	a = newAgent(t, config)
	a.args = append(a.args, "--log.level", "debug")
	a.env = append(a.env, "AZURE_AUTHORITY_HOST="+login.URL, "SSL_CERT_FILE="+own.CAFile, "AWS_CA_BUNDLE=", "AWS_ENDPOINT_URL_STS="+plain.URL+"/notoken", "HOME="+dir)
	return a, secrets
}

// kubeConfigs writes kubeconfig files, each with another way to log in.
func kubeConfigs(t *testing.T, dir, plain, secure, proxy, cert, key string) {
	t.Helper()
	code := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	for name, of := range map[string][2]string{
		"token":  {"server: " + plain + "/sd51", "token: CANARY-kubetoken"},
		"file":   {"server: " + plain + "/sd52", "tokenFile: bearer"},
		"basic":  {"server: " + plain + "/sd53", "username: u, password: CANARY-kubepassword"},
		"tls":    {"server: " + secure + "/sd54, insecure-skip-tls-verify: true", "client-certificate-data: " + code(cert) + ", client-key-data: " + code("CANARY-key\n"+key)},
		"proxy":  {"server: " + plain + "/sd55, proxy-url: 'http://CANARY-puser:CANARY-proxy@" + proxy + "'", "token: CANARY-kubetoken"},
		"exec":   {"server: " + plain, "exec: {command: CANARY-command, args: [CANARY-argument], env: [{name: T, value: CANARY-env}]}"},
		"broken": {"server: " + plain, "token: [CANARY-kubetoken]"},
		"data":   {"server: " + plain, "client-key-data: CANARY-nobase64"},
	} {
		writeFile(t, filepath.Join(dir, "kube-"+name), "clusters: [{name: c, cluster: {"+of[0]+"}}]\nusers: [{name: u, user: {"+of[1]+"}}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n")
	}
}

// TestNoSecretShows runs the agent with a canary in every key that can hold a secret, has
// each kind of failure happen at a side that repeats what it was sent, and looks for the
// canaries in all that comes out of the agent, a crash's dump included.
func TestNoSecretShows(t *testing.T) {
	t.Parallel()
	e := newEcho()
	a, secrets := canaryAgent(t, e, "canary.yaml")
	a.run()
	t.Cleanup(a.kill)

	// Every kind of failure must have occurred.
	want := map[string]string{ // reported error by target
		"url": "400 Bad Request", "headers": "400 Bad Request", "bearer": "401 Unauthorized", "bearer-file": "403 Forbidden", "authorization": "500 Internal",
		"authorization-file": "302 Found", "basic": "422 Unprocessable", "basic-file": "malformed HTTP", "hangs": "no answer within", "no-host": "no-such-host",
		"refused": "connection refused", "not-tls": "does not speak TLS", "unknown": "is not trusted: certificate of", "tls": "401 Unauthorized", "bad-key": "not-a-key", "two-lines": "two-lines",
		"proxy": "407", "tunnel": "407", "proxy-down": "refused", "socks-down": "refused", "token": "401 Unauthorized", "token-refused": "invalid_client",
		"token-proxy": "407", "token-tls": "500 Internal", "signed": "invalid_client", "signed-file": "401 Unauthorized",
		"sigv4": "403 Forbidden", "sigv4-role": "AWS keys", "azure-secret": "403 Forbidden", "azure-pod": "403 Forbidden", "azure-certificate": "403 Forbidden", "google": "invalid_client",
		"tenants": "401 Unauthorized", "path": "400 Bad Request", "path-down": "refused", "path-token": "invalid_client", "odd-header": "401 Unauthorized",
	}
	eventually(t, 60*time.Second, func() string {
		s := a.status()
		if len(s.Targets) != len(want)+1 {
			t.Fatalf("%d targets, the test knows of %d", len(s.Targets), len(want)+1)
		}
		for _, tg := range s.Targets {
			if told := tg.Why + " " + tg.LastError; !strings.Contains(told, want[tg.Name]) {
				return fmt.Sprintf("target %s says %q, not %q", tg.Name, told, want[tg.Name])
			}
			if dead := tg.Name == "url" || tg.Name == "headers" || tg.Name == "basic"; dead && tg.DeadLetters == 0 {
				return fmt.Sprintf("target %s has no dead letters", tg.Name)
			}
		}
		for _, p := range s.Probes {
			if p.Name != "data" && p.Name != "hwsagent" && p.LastError == "" {
				return fmt.Sprintf("probe %s has not failed", p.Name)
			}
		}
		return ""
	})
	senders(t, a)
	hits, shown := e.seen()
	for _, what := range []string{"400", "401", "403", "422", "500", "302", "raw", "hang", "token", "notoken", "phrase", "device", "proxy"} {
		if hits[what] == 0 {
			t.Errorf("nothing came to %s: %v", what, hits)
		}
	}
	if len(shown) < 15 {
		t.Errorf("the other side was shown only %d secrets", len(shown))
	}
	secrets = append(secrets, shown...)
	for _, user := range []string{"CANARY-user:CANARY-pass", "CANARY-puser:CANARY-proxy", "u:CANARY-basic", "id:CANARY-client"} {
		secrets = append(secrets, base64.StdEncoding.EncodeToString([]byte(user)))
	}
	o := outputs{t: t, a: a, found: map[string]string{}}
	o.pages()
	for _, more := range [][]string{nil, {"--json"}} {
		for _, args := range [][]string{{"status"}, {"check"}, {"targets"}, {"targets", "rejected", "url"}, {"targets", "rejected", "headers"}, {"targets", "rejected", "path"}, {"targets", "test", "token-refused"}, {"targets", "test", "proxy"}, {"wal", "inspect"}, {"probe", "v3-file"}} {
			o.command(append(args, more...)...)
		}
	}
	if !strings.Contains(o.found["hwsagent targets rejected url"], "400") {
		t.Errorf("dead letters show nothing:\n%s", o.found["hwsagent targets rejected url"])
	}
	if page := o.found["GET /metrics"]; !strings.Contains(page, `/w/<secret>/400`) {
		t.Errorf("the label url has not the address without its token")
	}
	o.brokenReloads()
	o.crash()
	o.files()
	o.search(40, secrets)
	t.Logf("%d outputs, %d secrets, %d requests", len(o.found), len(secrets), len(hits))
}

// senders sends to the agent's receivers with a wrong password, with one in the query, over plain
// HTTP to a port with TLS, and from another site.
func senders(t *testing.T, a *agent) {
	t.Helper()
	text, err := os.ReadFile(a.config)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}, Timeout: 10 * time.Second} // #nosec G402 -- who it is does not matter
	ports := regexp.MustCompile(`listen: "127.0.0.1:(\d+)"`).FindAllStringSubmatch(string(text), -1)
	if len(ports) != 2 {
		t.Fatalf("listeners %v", ports)
	}
	for _, port := range ports {
		for _, scheme := range []string{"http", "https"} {
			for _, path := range []string{"/api/v1/write", "/api/v1/import/prometheus", "/CANARY-place"} {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, scheme+"://127.0.0.1:"+port[1]+path+"?token=CANARY-sender-query", strings.NewReader("CANARY-body{"))
				if err != nil {
					t.Fatal(err)
				}
				req.SetBasicAuth("sender", "CANARY-sender")
				req.Header.Set("Origin", "http://CANARY-origin.example")
				resp, err := client.Do(req)
				if err != nil {
					continue // closed without an answer
				}
				_ = resp.Body.Close()
				if resp.StatusCode/100 == 2 {
					t.Errorf("%s with a wrong password: %s", req.URL.Path, resp.Status)
				}
			}
		}
	}
}
