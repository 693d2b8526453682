package e2e

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hwsagent/agent/demo/receiver"
)

// front is Debian's nginx before four Prometheus: the endpoints that the README's
// entries write to, and two more.
type front struct {
	*process
	pki       *receiver.PKI
	accessLog string

	plain string // http://host:port: /api/v1/write, and a write to / goes there too
	push  string // https://host:port: /api/v1/push, one bearer token per tenant
	mtls  string // https://host:port: /api/v1/receive, demands a client certificate
	self  string // https://host:port: /api/v1/write behind a self-signed certificate

	tenantToken [2]string
}

// backends are what nginx passes writes on to.
type backends struct {
	plain, receive, self *prometheus
	tenant               [2]*prometheus
}

// startFront starts nginx. A nil backend's endpoints answer 502.
func startFront(t *testing.T, b backends) *front {
	t.Helper()
	program := needs(t, "nginx")
	dir := t.TempDir()
	pki, err := receiver.NewPKI(dir)
	if err != nil {
		t.Fatal(err)
	}
	selfDir := filepath.Join(t.TempDir())
	other, err := receiver.NewPKI(selfDir) // signed by an unknown authority
	if err != nil {
		t.Fatal(err)
	}
	host := func() string { return fmt.Sprintf("127.0.0.1:%d", freePort(t)) }
	plain, push, mtls, self := host(), host(), host(), host()
	f := &front{
		pki: pki, accessLog: filepath.Join(dir, "access.log"),
		plain: "http://" + plain, push: "https://" + push, mtls: "https://" + mtls, self: "https://" + self,
		tenantToken: [2]string{"prod-3b5d5c3712955042", "dev-212284a6d9b3e1f7"},
	}
	upstream := func(p *prometheus) string {
		if p == nil {
			return "127.0.0.1:1"
		}
		return p.addr
	}
	conf := strings.NewReplacer(
		"DIR", dir, "SELF_CERT", other.ServerCertFile, "SELF_KEY", other.ServerKeyFile,
		"PLAIN", plain, "PUSH", push, "MTLS", mtls, "SELF", self,
		"TOKEN_0", f.tenantToken[0], "TOKEN_1", f.tenantToken[1],
		"UP_WRITE", upstream(b.plain), "UP_SELF", upstream(b.self), "UP_RECEIVE", upstream(b.receive),
		"UP_TENANT_0", upstream(b.tenant[0]), "UP_TENANT_1", upstream(b.tenant[1]),
	).Replace(nginxConf)
	file := writeFile(t, filepath.Join(dir, "nginx.conf"), conf)
	f.process = startProcess(t, program, []string{"-p", dir, "-c", file, "-e", filepath.Join(dir, "start.log")}, nil)
	eventually(t, 10*time.Second, func() string {
		if gone := f.ended(); gone != "" {
			t.Fatal(gone)
		}
		resp, err := httpClient(t).Get(f.plain + "/up")
		if err != nil {
			return err.Error()
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return "nginx is not ready: " + resp.Status
		}
		return ""
	})
	return f
}

// nginxConf is a master without daemon and one worker, which both end with the signal
// that the test sends to the master.
const nginxConf = `
user root;
daemon off;
master_process off;
pid DIR/nginx.pid;
error_log stderr warn;
events {}
http {
	log_format refusals '$status $uri tenant=$tenant client=$ssl_client_s_dn';
	access_log DIR/access.log refusals;
	client_body_temp_path DIR/body;
	proxy_temp_path DIR/proxy;
	fastcgi_temp_path DIR/fastcgi;
	uwsgi_temp_path DIR/uwsgi;
	scgi_temp_path DIR/scgi;
	client_max_body_size 32m;
	proxy_http_version 1.1;

	map $http_authorization $tenant {
		default          "";
		"Bearer TOKEN_0" 0;
		"Bearer TOKEN_1" 1;
	}
	map $tenant $tenant_backend {
		0 UP_TENANT_0;
		1 UP_TENANT_1;
	}

	server {
		listen PLAIN;
		location = /up { return 200; }
		location = /api/v1/write { proxy_pass http://UP_WRITE/api/v1/write; }
		location = / { proxy_pass http://UP_WRITE/api/v1/write; }
	}
	server {
		listen PUSH ssl;
		ssl_certificate DIR/server.pem;
		ssl_certificate_key DIR/server.key;
		location = /api/v1/push {
			if ($tenant = "") { return 401 "no such tenant\n"; }
			proxy_pass http://$tenant_backend/api/v1/write;
		}
	}
	server {
		listen MTLS ssl;
		ssl_certificate DIR/server.pem;
		ssl_certificate_key DIR/server.key;
		ssl_client_certificate DIR/ca.pem;
		ssl_verify_client on;
		location = /api/v1/receive { proxy_pass http://UP_RECEIVE/api/v1/write; }
	}
	server {
		listen SELF ssl;
		ssl_certificate SELF_CERT;
		ssl_certificate_key SELF_KEY;
		location = /api/v1/write { proxy_pass http://UP_SELF/api/v1/write; }
	}
}
`
