package kubernetes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"hwsagent/internal/files"
)

// TestConfig: configurations refused by Prometheus are refused, with an error that names the key.
func TestConfig(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"role: pod", ""},
		{"role: endpoints, selectors: [{role: pod, label: 'a in (b, c)'}, {role: endpoints, field: 'metadata.name=x'}]", ""},
		{"role: node, api_server: 'https://h:6443', bearer_token_file: /t, tls_config: {ca_file: /c}", ""},
		{"role: pod, namespaces: {own_namespace: true, names: [a]}, attach_metadata: {node: true, deployment: true}", ""},
		{"", "role is missing"},
		{"role: pods", `role "pods" is unknown`},
		{"role: pod, rolle: x", "rolle"},
		{"role: pod, api_server: 'https://h', kubeconfig_file: k", "exclude each other"},
		{"role: pod, kubeconfig_file: k, bearer_token: x", "kubeconfig_file has the login"},
		{"role: pod, bearer_token: x", "api_server is missing"},
		{"role: pod, api_server: 'https://h', namespaces: {own_namespace: true}", "own_namespace"},
		{"role: pod, kubeconfig_file: k, namespaces: {own_namespace: true}", "own_namespace"},
		{"role: pod, api_server: 'h:6443'", "api_server"},
		{"role: pod, api_server: '/x'", "api_server is not an address"},
		{"role: pod, api_server: 'https://h', bearer_token: x, basic_auth: {username: u}", "at most one"},
		{"role: service, selectors: [{role: pod}]", "role service allows selectors of service only"},
		{"role: pod, selectors: [{role: pod}, {role: pod}]", "two for role pod"},
		{"role: pod, selectors: [{role: x}]", `role "x" is unknown`},
		{"role: pod, selectors: [{role: pod, label: 'a b'}]", `"a b" is not like`},
		{"role: pod, selectors: [{role: pod, field: a}]", `"a" is not like`},
	} {
		var c Config
		err := yaml.Load([]byte("{"+tc.text+"}"), &c, yaml.WithKnownFields())
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v, want %q", tc.text, err, tc.want)
		}
	}
}

// TestKubeConfig: a kubeconfig file leads to the server and the login of its current context; what it cannot
// say is refused without a secret.
func TestKubeConfig(t *testing.T) {
	whole := func(cluster, user string) string {
		return `
clusters: [{name: other, cluster: {server: "https://wrong"}}, {name: c, cluster: {` + cluster + `}}]
users: [{name: other, user: {token: CANARY-other}}, {name: u, user: {` + user + `}}]
contexts: [{name: y, context: {cluster: other, user: other}}, {name: x, context: {cluster: c, user: u, namespace: n}}]
current-context: x
preferences: {colors: true}
`
	}
	const server = "server: 'https://k:6443/base'"
	for _, tc := range []struct{ name, text, want string }{
		{"token", whole(server, "token: CANARY"), ""},
		{"token file", whole(server, "token: CANARY, tokenFile: t"), ""},
		{"password", whole(server, "username: u, password: CANARY"), ""},
		{"certificate files", whole(server+", certificate-authority: ca.pem", "client-certificate: c.pem, client-key: /k.pem"), ""},
		{"certificates", whole(server+", certificate-authority-data: YQ==, tls-server-name: s", "client-certificate-data: YQ==, client-key-data: YQ=="), ""},
		{"as another", whole(server, "token: CANARY, as: a, as-groups: [g, h], as-user-extra: {k: [v]}"), ""},
		{"proxy", whole(server+", proxy-url: 'http://p:1'", "token: CANARY"), ""},
		{"no scheme", whole("server: 'k:6443', insecure-skip-tls-verify: true", ""), ""},
		{"JSON", `{"clusters": [{"name": "c", "cluster": {"server": "http://k"}}], "contexts": [{"name": "x", "context": {"cluster": "c"}}], "current-context": "x"}`, ""},
		{"no YAML", "a: b: CANARY", "not a kubeconfig file"},
		{"another type", whole(server, "token: [CANARY]"), "line 3 is wrong"},
		{"empty", "", "no current-context"},
		{"unknown context", strings.Replace(whole(server, ""), "current-context: x", "current-context: z", 1), `"z", which is not among contexts`},
		{"unknown cluster", strings.Replace(whole(server, ""), "name: c,", "name: d,", 1), `names cluster "c"`},
		{"unknown user", strings.Replace(whole(server, ""), "name: u,", "name: v,", 1), `names user "u"`},
		{"no server", whole("", ""), "has no server"},
		{"no address", whole("server: 'ftp://CANARY'", ""), "not an address"},
		{"program", whole(server, "exec: {command: CANARY}"), "by a program (exec), which the agent does not run"},
		{"provider", whole(server, "auth-provider: {name: gcp, config: {access-token: CANARY}}"), "auth-provider"},
		{"no base64", whole(server, "client-key-data: '?CANARY'"), "client-key-data is not in base64"},
		{"key alone", whole(server, "client-key-data: YQ=="), "the user of context"},
		{"bad proxy", whole(server+", proxy-url: ':CANARY'", ""), "proxy-url is not an address"},
	} {
		a, err := parseKubeConfig([]byte(tc.text), "/dir")
		if err != nil {
			if tc.want == "" || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "CANARY") {
				t.Errorf("%s: %v, want %q", tc.name, err, tc.want)
			}
			continue
		}
		if tc.want != "" {
			t.Errorf("%s: taken, want %q", tc.name, tc.want)
			continue
		}
		h := a.HTTP
		auth := h.Authorization
		ok := map[string]bool{
			"token":             auth != nil && auth.Credentials == "CANARY" && a.Server.String() == "https://k:6443/base" && h.ProxyFromEnvironment,
			"token file":        auth != nil && auth.CredentialsFile == "/dir/t" && auth.Credentials == "",
			"password":          h.BasicAuth != nil && h.BasicAuth.Username == "u" && h.BasicAuth.Password == "CANARY",
			"certificate files": h.TLSConfig.CAFile == "/dir/ca.pem" && h.TLSConfig.CertFile == "/dir/c.pem" && h.TLSConfig.KeyFile == "/k.pem",
			"certificates":      h.TLSConfig.CA == "a" && h.TLSConfig.Cert == "a" && h.TLSConfig.Key == "a" && h.TLSConfig.ServerName == "s",
			"as another": h.HTTPHeaders != nil && len(h.HTTPHeaders.Headers) == 3 && len(h.HTTPHeaders.Headers["Impersonate-Group"].Values) == 2 &&
				h.HTTPHeaders.Headers["Impersonate-Extra-k"].Values[0] == "v",
			"proxy":     h.ProxyURL.URL != nil && h.ProxyURL.Host == "p:1" && !h.ProxyFromEnvironment,
			"no scheme": a.Server.String() == "https://k:6443" && h.TLSConfig.InsecureSkipVerify,
			"JSON":      a.Server.String() == "http://k",
		}[tc.name]
		if !ok {
			t.Errorf("%s: %+v at %v", tc.name, h, a.Server)
		}
	}
}

// TestKubeConfigFile: a file that is none, or too large, is not read.
func TestKubeConfigFile(t *testing.T) {
	dir := t.TempDir()
	large := filepath.Join(dir, "large")
	if err := os.WriteFile(large, make([]byte, maxKubeConfig+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{dir: "not a regular file", large: "more than", filepath.Join(dir, "none"): "no such file"} {
		if _, err := files.Read(path, maxKubeConfig); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}

// TestPod: in a pod the service account leads to the API server.
func TestPod(t *testing.T) {
	env := map[string]string{}
	around := Surroundings{Getenv: func(name string) string { return env[name] }, ServiceAccount: "/sa"}
	c := &Config{Role: RolePod}
	if _, err := c.Access(around); err == nil || !strings.Contains(err.Error(), "does not run in a pod") {
		t.Errorf("outside: %v", err)
	}
	env["KUBERNETES_SERVICE_HOST"], env["KUBERNETES_SERVICE_PORT"] = "fd00::1", "443"
	a, err := c.Access(around)
	if err != nil || a.Server.String() != "https://[fd00::1]:443" || a.HTTP.TLSConfig.CAFile != "/sa/ca.crt" || a.HTTP.Authorization.CredentialsFile != "/sa/token" {
		t.Errorf("%+v, %v", a, err)
	}
}
