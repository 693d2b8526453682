package scrapediff

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// token is the bearer token of the servers' only user, who may do everything.
const token = "secret"

// cluster is an etcd and the API servers on it: kube-apiserver as it is, without the controllers and kubelets that would
// change objects by themselves.
type cluster struct {
	t        *testing.T
	programs string // their directory
	dir      string
	etcd     string // URL
	client   *http.Client
}

// newCluster starts an etcd. programs is a directory with etcd and kube-apiserver (see e2e/kubernetes/server/go.mod).
func newCluster(t *testing.T, programs string) *cluster {
	t.Helper()
	insecure := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // a certificate that the server made for itself
	c := &cluster{t: t, programs: programs, dir: t.TempDir(), etcd: "http://" + freePort(t), client: &http.Client{Transport: insecure, Timeout: 20 * time.Second}}
	t.Cleanup(c.client.CloseIdleConnections)
	peer := "http://" + freePort(t)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	c.write("key.pem", pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
	c.write("tokens.csv", []byte(token+",admin,1,system:masters\n"))
	c.start("etcd", "--data-dir="+filepath.Join(c.dir, "etcd"), "--listen-client-urls="+c.etcd, "--advertise-client-urls="+c.etcd, "--listen-peer-urls="+peer,
		"--initial-advertise-peer-urls="+peer, "--initial-cluster=default="+peer, "--unsafe-no-fsync", "--log-level=error")
	c.await(c.etcd+"/health", http.StatusOK)
	return c
}

// serve starts an API server at an address. The returned function kills it.
func (c *cluster) serve(address string) (kill func()) {
	c.t.Helper()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		c.t.Fatal(err)
	}
	key := filepath.Join(c.dir, "key.pem")
	kill = c.start("kube-apiserver", "--etcd-servers="+c.etcd, "--bind-address="+host, "--advertise-address="+host, "--secure-port="+port,
		"--cert-dir="+filepath.Join(c.dir, "certs"), "--service-cluster-ip-range=10.0.0.0/16", "--token-auth-file="+filepath.Join(c.dir, "tokens.csv"),
		"--authorization-mode=RBAC", "--disable-admission-plugins=ServiceAccount", "--endpoint-reconciler-type=none",
		"--service-account-issuer=https://cluster.example", "--service-account-key-file="+key, "--service-account-signing-key-file="+key)
	c.await("https://"+address+"/readyz", http.StatusOK)
	return kill
}

func (c *cluster) write(name string, text []byte) {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, name), text, 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// start starts a program, which ends with the test, or by the returned function. Its last words are shown if the test fails.
func (c *cluster) start(name string, args ...string) (kill func()) {
	c.t.Helper()
	var said bytes.Buffer
	cmd := exec.Command(filepath.Join(c.programs, name), args...)
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	killed := false
	kill = func() {
		if killed {
			return
		}
		killed = true
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed
		if text := said.Bytes(); c.t.Failed() {
			c.t.Logf("%s: … %s", name, text[max(0, len(text)-3000):])
		}
	}
	c.t.Cleanup(kill)
	return kill
}

// await waits until a URL answers so.
func (c *cluster) await(url string, status int) {
	c.t.Helper()
	var last error
	for deadline := time.Now().Add(3 * time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) { // another process
		var got int
		if got, _, last = c.ask(http.MethodGet, url, "", nil); last == nil && got == status {
			return
		}
	}
	c.t.Fatalf("%s does not answer: %v", url, last)
}

// ask sends a request with a JSON body.
func (c *cluster) ask(method, url, contentType string, body any) (int, []byte, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return 0, nil, err
	}
	r, err := http.NewRequestWithContext(c.t.Context(), method, url, bytes.NewReader(text))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", contentType)
	resp, err := c.client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	return resp.StatusCode, answer, err
}

// must sends a request that the server has to take.
func (c *cluster) must(method, url, contentType string, body any) []byte {
	c.t.Helper()
	status, answer, err := c.ask(method, url, contentType, body)
	if err != nil || status/100 != 2 {
		c.t.Fatalf("%s %s: %d %s %v", method, url, status, answer, err)
	}
	return answer
}

// compact makes etcd forget all versions but the newest, so that a watch from an older one is refused.
func (c *cluster) compact() {
	c.t.Helper()
	var now struct {
		Header struct {
			Revision string `json:"revision"`
		} `json:"header"`
	}
	if err := json.Unmarshal(c.must(http.MethodPost, c.etcd+"/v3/kv/range", "application/json", some{"key": "AA=="}), &now); err != nil {
		c.t.Fatal(err)
	}
	c.must(http.MethodPost, c.etcd+"/v3/kv/compaction", "application/json", some{"revision": now.Header.Revision, "physical": true})
}

// freePort returns an address of this machine on which nothing listens.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return fmt.Sprint(l.Addr())
}
