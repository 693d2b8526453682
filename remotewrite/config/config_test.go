package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	promconfig "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v4"
)

func parse(text string) (*Config, error) {
	var c Config
	err := yaml.Load([]byte(text), &c, yaml.WithKnownFields())
	return &c, err
}

func mustParse(t testing.TB, text string) *Config {
	t.Helper()
	c, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if p := c.Validate(); len(p) > 0 {
		t.Fatal(p)
	}
	return c
}

func TestConfigDefaults(t *testing.T) {
	c := mustParse(t, `url: https://prometheus.example:9090/api/v1/write`)
	got := fmt.Sprint(c.TargetName(), " ", c.RemoteTimeout, " ", c.Queue, " ", c.Metadata, " ", c.Target, " ", c.SendExemplars, c.SendNativeHistograms)
	want := "prometheus.example:9090/api/v1/write 30s {20000 50 1 10000 5s 30ms 5s true 0s} {true 1m 2000} {hold now 0 0B in_order 10m snappy <nil>} false false"
	if got != want {
		t.Errorf("defaults are\n%s, want\n%s", got, want)
	}
	if w := c.Warnings(); len(w) > 0 {
		t.Errorf("warnings: %v", w)
	}
}

// Every key of a Prometheus entry, pasted.
func TestConfigPasted(t *testing.T) {
	c := mustParse(t, `
url: https://mimir.example/api/v1/push
name: mimir
remote_timeout: 10s
headers: {X-Scope-OrgID: tenant-1}
write_relabel_configs:
  - {source_labels: [__name__], regex: 'go_.*', action: drop}
send_exemplars: true
send_native_histograms: true
round_robin_dns: true
protobuf_message: prometheus.WriteRequest
failed_request_logging: true
bearer_token_file: mimir.token
tls_config: {ca_file: ca.pem, cert_file: /etc/c.pem, key_file: c.key, server_name: m, insecure_skip_verify: true, min_version: TLS12, max_version: TLS13}
proxy_url: http://proxy.example:3128
no_proxy: 10.0.0.0/8
proxy_connect_header: {X-A: [b]}
follow_redirects: true
enable_http2: true
http_headers: {X-B: {values: [c], secrets: [d], files: [e]}}
queue_config: {capacity: 2500, max_shards: 20, min_shards: 2, max_samples_per_send: 500, batch_send_deadline: 1s, min_backoff: 1s, max_backoff: 10s, retry_on_http_429: false, sample_age_limit: 5m}
metadata_config: {send: false, send_interval: 2m, max_samples_per_send: 100}
hwsagent: {on_refusal: drop, start_at: oldest, max_backlog: 1GiB, future_limit: 1h}
`)
	c.SetDirectory("/etc/hwsagent")
	for _, tc := range []struct {
		name      string
		got, want any
	}{
		{"name", c.TargetName(), "mimir"},
		{"token", c.HTTP.Authorization.CredentialsFile, "/etc/hwsagent/mimir.token"},
		{"ca", c.HTTP.TLSConfig.CAFile, "/etc/hwsagent/ca.pem"},
		{"cert", c.HTTP.TLSConfig.CertFile, "/etc/c.pem"},
		{"header file", c.HTTP.HTTPHeaders.Headers["X-B"].Files[0], "/etc/hwsagent/e"},
		{"http2", c.HTTP.EnableHTTP2, true},
		{"queue", c.Queue, QueueConfig{2500, 20, 2, 500, duration(time.Second), duration(time.Second), duration(10 * time.Second), false, duration(5 * time.Minute)}},
		{"metadata", c.Metadata, MetadataConfig{false, duration(2 * time.Minute), 100}},
		{"target", c.Target, TargetConfig{OnRefusal: RefusalDrop, StartAt: StartOldest, MaxBacklog: 1 << 30, CatchUp: InOrder, Compression: CompressionSnappy, FutureLimit: duration(time.Hour)}},
		{"policy", c.Policy(), Policy{RefusalDrop, true}},
	} {
		if d := cmp.Diff(tc.want, tc.got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, d)
		}
	}
	var names []string
	for _, w := range c.Warnings() {
		names = append(names, w.Path)
	}
	want := []string{"follow_redirects", "failed_request_logging", "queue_config.max_shards", "tls_config.insecure_skip_verify"}
	if d := cmp.Diff(want, names); d != "" {
		t.Errorf("warnings (-want +got):\n%s", d)
	}
}

func duration(t time.Duration) model.Duration { return model.Duration(t) }

// A part that is written as null or left open keeps its defaults.
func TestConfigEmptyParts(t *testing.T) {
	c := mustParse(t, "url: http://localhost/w\nqueue_config:\nmetadata_config: {}\nhwsagent: {}\ntls_config:\nheaders:\n")
	want := mustParse(t, "url: http://localhost/w")
	if c.Queue != want.Queue || c.Metadata != want.Metadata || c.Target != want.Target {
		t.Errorf("got %+v %+v %+v", c.Queue, c.Metadata, c.Target)
	}
	c = mustParse(t, "url: http://localhost/w\nqueue_config: {capacity: 5}\nmetadata_config: {send_interval: 5m}\nhwsagent: {start_at: oldest}")
	if c.Queue.MaxShards != 50 || !c.Queue.RetryOnRateLimit || !c.Metadata.Send || c.Target.FutureLimit != want.Target.FutureLimit {
		t.Errorf("a part that is given in part loses defaults: %+v %+v %+v", c.Queue, c.Metadata, c.Target)
	}
}

// What cannot be decoded is reported with its line, all of it at once.
func TestConfigStrict(t *testing.T) {
	_, err := parse(`url: http://localhost/w
bearer_tokn_file: x
remote_timeout: 30
tls_config: {ca_fil: x, min_version: TLS9}
queue_config: {shards: 3}
hwsagent: {max_backlog: 3 apples, x: 1}
`)
	var all *yaml.LoadErrors
	if !errors.As(err, &all) {
		t.Fatalf("error is %T: %v", err, err)
	}
	for _, want := range []string{"bearer_tokn_file", "30", "ca_fil", "TLS9", "shards", "3 apples", "field x "} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no mention of %s in:\n%v", want, err)
		}
	}
	for _, e := range all.Errors {
		if e.Mark.Line == 0 {
			t.Errorf("no line: %v", e)
		}
	}
}

// What Prometheus takes of its ways to log in to three clouds: the good examples of its packages sigv4 and azuread.
// A relative file counts from the configuration.
func TestCloudsAsPrometheusHasThem(t *testing.T) {
	const id = "00000000-a12b-3cd4-e56f-000000000000"
	for text, file := range map[string]string{
		`sigv4: {}`: "",
		`sigv4: {region: us-east-2, access_key: AccessKey, secret_key: SecretKey, profile: profile, role_arn: "blah:role/arn", external_id: external123, use_fips_sts_endpoint: true, service_name: test}`: "",
		`sigv4: {region: us-east-2, profile: profile, role_arn: "arn:aws:iam::123456789012:role/test-role", session_name: prometheus-instance-1, tags: {team: observability, cost-center: "12345"}}`:       "",
		`azuread: {cloud: AzurePublic, managed_identity: {client_id: }}`: "",
		`azuread: {managed_identity: {client_id: ` + id + `}}`:           "",
		`azuread: {cloud: AzureChina, oauth: {client_id: ` + id + `, client_secret: "Cl1ent$ecret!", tenant_id: ` + id + `}, scope: "https://custom-app.com/.default"}`: "",
		`azuread: {cloud: AzureGovernment, sdk: {tenant_id: ` + id + `}}`:                                                                                               "",
		`azuread: {workload_identity: {client_id: ` + id + `, tenant_id: ` + id + `, token_file_path: token}}`:                                                          "/etc/hwsagent/token",
		`azuread: {certificate: {client_id: ` + id + `, tenant_id: ` + id + `, certificate_path: /c.pem, certificate_key_path: /c.pem, send_certificate_chain: true}}`:  "/c.pem",
		`google_iam: {credentials_file: key.json}`: "/etc/hwsagent/key.json",
		`google_iam: {}`: "",
	} {
		c, err := parse("{url: https://h/, " + text + "}")
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		c.SetDirectory("/etc/hwsagent")
		if p := append(c.Validate(), c.Warnings()...); len(p) > 0 || !c.UsesCloud() {
			t.Errorf("%s: %v", text, p)
		}
		if f := c.CredentialFiles(); file == "" && len(f) > 0 || file != "" && (len(f) == 0 || f[0] != file) {
			t.Errorf("%s: files %q", text, f)
		}
	}
}

func TestConfigProblems(t *testing.T) {
	for _, tc := range []struct{ text, path, says string }{
		{`name: x`, "url", "missing"},
		{`url: ftp://h/`, "url", "ftp"},
		{`url: /api/v1/push`, "url", "scheme"},
		{`url: "http:///x"`, "url", "no host"},
		{`url: http://h/#x`, "url", "fragment"},
		{`{url: http://h/, hwsagent: {on_refusal: never}}`, "hwsagent.on_refusal", `"never" is not one of hold, drop`},
		{`{url: http://h/, hwsagent: {catch_up: now}}`, "hwsagent.catch_up", `"now" is not one of in_order, live_first`},
		{`{url: http://h/, hwsagent: {compression: gzip}}`, "hwsagent.compression", `"gzip" is not one of snappy, zstd`},
		{`{url: http://h/, hwsagent: {start_at: then}}`, "hwsagent.start_at", `"then" is not one of now, oldest`},
		{`{url: http://h/, sigv4: {access_key: x}}`, "sigv4.secret_key", "missing beside access_key"},
		{`{url: http://h/, sigv4: {secret_key: x}}`, "sigv4.access_key", "missing beside secret_key"},
		{`{url: http://h/, sigv4: {external_id: x}}`, "sigv4.external_id", "without role_arn"},
		{`{url: http://h/, sigv4: {session_name: xy}}`, "sigv4.session_name", "without role_arn"},
		{`{url: http://h/, sigv4: {tags: {a: b}}}`, "sigv4.tags", "without role_arn"},
		{`{url: http://h/, sigv4: {role_arn: r, session_name: "a b"}}`, "sigv4.session_name", "not a name"},
		{`{url: http://h/, sigv4: {role_arn: r, session_name: a}}`, "sigv4.session_name", "2 to 64"},
		{`{url: http://h/, sigv4: {role_arn: r, tags: {"": b}}}`, "sigv4.tags.", "not a tag"},
		{`{url: http://h/, sigv4: {region: "evil.example/"}}`, "sigv4.region", "not a region"},
		{`{url: http://h/, azuread: {}}`, "azuread", "exactly one way"},
		{`{url: http://h/, azuread: {managed_identity: {}, sdk: {}}}`, "azuread", "exactly one way"},
		{`{url: http://h/, azuread: {cloud: x, sdk: {}}}`, "azuread.cloud", "AzurePublic, AzureGovernment or AzureChina"},
		{`{url: http://h/, azuread: {scope: "a\"b", sdk: {}}}`, "azuread.scope", "characters"},
		{`{url: http://h/, azuread: {managed_identity: {client_id: x}}}`, "azuread.managed_identity.client_id", "not an identifier"},
		{`{url: http://h/, azuread: {workload_identity: {tenant_id: 00000000-0000-0000-0000-000000000000}}}`, "azuread.workload_identity.client_id", "missing"},
		{`{url: http://h/, azuread: {workload_identity: {client_id: 00000000-0000-0000-0000-000000000000}}}`, "azuread.workload_identity.tenant_id", "missing"},
		{`{url: http://h/, azuread: {oauth: {client_id: 00000000-0000-0000-0000-000000000000, tenant_id: a.example}}}`, "azuread.oauth.client_secret", "missing"},
		{`{url: http://h/, azuread: {oauth: {client_id: 00000000-0000-0000-0000-000000000000, client_secret: x, tenant_id: a/b}}}`, "azuread.oauth.tenant_id", "not a tenant"},
		{`{url: http://h/, azuread: {sdk: {tenant_id: a/b}}}`, "azuread.sdk.tenant_id", "not a tenant"},
		{`{url: http://h/, azuread: {certificate: {client_id: 00000000-0000-0000-0000-000000000000, tenant_id: t}}}`, "azuread.certificate.certificate_path", "missing"},
		{`{url: http://h/, sigv4: {}, google_iam: {}}`, "", "sigv4, google_iam (leave one)"},
		{`{url: http://h/, azuread: {sdk: {}}, basic_auth: {username: x}}`, "", "basic_auth, azuread"},
		{`{url: http://h/, google_iam: {}, bearer_token_file: x}`, "", "authorization, google_iam"},
		{`{url: http://h/, sigv4: {}, oauth2: {client_id: x, token_url: "http://i/"}}`, "", "oauth2, sigv4"},
		{`{url: "http://u:p@h/", sigv4: {}}`, "", "sigv4, a user in url"},
		{`{url: http://h/, sigv4: {}, hwsagent: {tenant: {label: t, credentials_dir: d}}}`, "", "sigv4, hwsagent.tenant.credentials_dir"},
		{`{url: http://h/, basic_auth: {username_ref: x}}`, "basic_auth.username_ref", "not supported"},
		{`{url: http://h/, authorization: {credentials_ref: x}}`, "authorization.credentials_ref", "not supported"},
		{`{url: http://h/, tls_config: {ca_ref: x}}`, "tls_config.ca_ref", "not supported"},
		{`{url: http://h/, tls_config: {min_version: TLS13, max_version: TLS12}}`, "tls_config.max_version", "below"},
		{`{url: http://h/, bearer_token: a, bearer_token_file: b}`, "", "at most one of"},
		{`{url: http://h/, bearer_token: a, basic_auth: {username: b}}`, "", "at most one of"},
		{`{url: "http://u:p@h/", bearer_token: a}`, "url", "another authentication"},
		{`{url: http://h/, proxy_url: "ftp://p"}`, "proxy_url", "ftp"},
		{`{url: http://h/, headers: {content-type: x}}`, "headers.content-type", "reserved"},
		{`{url: http://h/, headers: {x-prometheus-remote-write-version: x}}`, "headers.x-prometheus-remote-write-version", "reserved"},
		{`{url: http://h/, headers: {authorization: x}}`, "headers.authorization", "cannot be set here"},
		{`{url: http://h/, headers: {"a b": x}}`, "headers.a b", "not a header name"},
		{`{url: http://h/, headers: {a: "x\ny"}}`, "headers.a", "not allow"},
		{`{url: http://h/, http_headers: {Retry-Attempt: {values: [x]}}}`, "http_headers.Retry-Attempt", "reserved"},
		{`{url: http://h/, write_relabel_configs: [null]}`, "write_relabel_configs[0]", "empty"},
		{`{url: http://h/, write_relabel_configs: [{action: keep}, {action: hashmod, target_label: x}]}`, "write_relabel_configs[1]", "modulus"},
		{`{url: http://h/, protobuf_message: x}`, "protobuf_message", "unknown"},
		{`{url: http://h/, remote_timeout: 0s}`, "remote_timeout", "more than 0s"},
		{`{url: http://h/, queue_config: {capacity: 0}}`, "queue_config.capacity", "below 1"},
		{`{url: http://h/, queue_config: {max_shards: 0, min_shards: 0}}`, "queue_config.max_shards", "below 1"},
		{`{url: http://h/, queue_config: {max_shards: 2, min_shards: 3}}`, "queue_config.min_shards", "above max_shards"},
		{`{url: http://h/, queue_config: {max_samples_per_send: -1}}`, "queue_config.max_samples_per_send", "below 1"},
		{`{url: http://h/, queue_config: {batch_send_deadline: 0s}}`, "queue_config.batch_send_deadline", "more than"},
		{`{url: http://h/, queue_config: {min_backoff: 10s}}`, "queue_config.max_backoff", "below min_backoff"},
		{`{url: http://h/, metadata_config: {send_interval: 0s}}`, "metadata_config.send_interval", "more than"},
		{`{url: http://h/, metadata_config: {max_samples_per_send: 0}}`, "metadata_config.max_samples_per_send", "below 1"},
		{`{url: http://h/, oauth2: {client_id: x}}`, "oauth2.token_url", "missing"},
		{`{url: http://h/, oauth2: {token_url: "http://i/"}}`, "oauth2.client_id", "missing"},
		{`{url: http://h/, oauth2: {client_id: x, token_url: /token}}`, "oauth2.token_url", "not an address"},
		{`{url: http://h/, oauth2: {client_id: x, token_url: "http://i:port/"}}`, "oauth2.token_url", "not an address"},
		{`{url: http://h/, oauth2: {client_id: x, token_url: "http://i/", client_secret: a, client_secret_file: b}}`, "", "at most one of oauth2 client_secret"},
		{`{url: http://h/, oauth2: {client_id: x, token_url: "http://i/", client_secret_ref: a}}`, "oauth2.client_secret_ref", "not supported"},
		{`{url: http://h/, oauth2: {client_id: x, token_url: "http://i/", tls_config: {ca_ref: a}}}`, "oauth2.tls_config.ca_ref", "not supported"},
		{`{url: http://h/, oauth2: {client_id: x, token_url: "http://i/", proxy_url: "ftp://p"}}`, "oauth2.proxy_url", "ftp"},
		{`{url: http://h/, oauth2: {client_id: x, token_url: "http://i/", scopes: [a], endpoint_params: {scope: b}}}`, "oauth2.endpoint_params.scope", "already in scopes"},
		{`{url: http://h/, oauth2: {client_id: x, token_url: "http://i/", grant_type: "urn:ietf:params:oauth:grant-type:jwt-bearer"}}`, "oauth2.client_certificate_key_file", "missing"},
		{`{url: http://h/, bearer_token: a, oauth2: {client_id: x, token_url: "http://i/"}}`, "", "at most one of"},
		{`{url: "http://u:p@h/", oauth2: {client_id: x, token_url: "http://i/"}}`, "url", "another authentication"},
		{`{url: http://h/, proxy_url: "http://"}`, "proxy_url", "no host"},
		{`{url: http://h/, no_proxy: x}`, "", "proxy_url must also be configured"},
		{`{url: http://h/, http_headers: {X-A: {}}}`, "http_headers.X-A", "no value"},
		{`{url: http://h/, http_headers: {X-A: {secrets: ["a\nb"]}}}`, "http_headers.X-A.secrets[0]", "does not allow"},
		{`{url: http://h/, http_headers: {Proxy-Authorization: {values: [x]}}}`, "http_headers.Proxy-Authorization", "between agent and proxy (write the user into proxy_url"},
		{`{url: http://h/, http_headers: {Transfer-Encoding: {values: [x]}}}`, "http_headers.Transfer-Encoding", "HTTP itself sets it"},
		{`{url: http://h/, http_headers: {X-Amz-Date: {values: [x]}}}`, "http_headers.X-Amz-Date", "use sigv4"},
	} {
		c, err := parse(tc.text)
		if err != nil {
			t.Errorf("%s: %v", tc.text, err)
			continue
		}
		found := false
		problems := c.Validate()
		for _, p := range problems {
			found = found || p.Path == tc.path && strings.Contains(p.Error(), tc.says)
		}
		if !found {
			t.Errorf("%s: want %q at %q, got %v", tc.text, tc.says, tc.path, problems)
		}
		if again := c.Validate(); len(again) != len(problems) {
			t.Errorf("%s: a second look finds %v", tc.text, again)
		}
	}
}

func TestConfigWarnings(t *testing.T) {
	for _, tc := range []struct{ text, path, says string }{
		{`{url: http://h.example/, bearer_token: x}`, "url", "plain http"},
		{`{url: "http://u:p@h.example/"}`, "url", "plain http"},
		{`{url: "http://h.example/", http_headers: {X-Key: {files: [k]}}}`, "url", "plain http"},
		{`{url: "https://u:p@h.example/"}`, "url", "password in it"},
		{`{url: http://127.0.0.1/, tls_config: {ca_file: x}}`, "tls_config", "no effect"},
		{`{url: http://h.example/, oauth2: {client_id: x, token_url: "https://i/"}}`, "url", "plain http"},
		{`{url: https://h.example/, oauth2: {client_id: x, token_url: "http://i/"}}`, "oauth2.token_url", "plain http"},
		{`{url: https://h.example/, oauth2: {client_id: x, token_url: "https://i/", grant_type: password}}`, "oauth2.grant_type", "effect of client_credentials"},
		{`{url: https://h.example/, oauth2: {client_id: x, token_url: "https://i/", tls_config: {insecure_skip_verify: true}}}`, "oauth2.tls_config.insecure_skip_verify", "anyone"},
		{`{url: http://h.example/, proxy_url: "http://p/", hwsagent: {on_refusal: drop}}`, "proxy_url", "looks like one by the receiver"},
		{`{url: http://127.0.0.1/, queue_config: {max_shards: 17}}`, "queue_config.max_shards", "effect of 16"},
		{`{url: http://127.0.0.1/, queue_config: {max_shards: 8, min_shards: 3}}`, "queue_config.min_shards", "effect of 2"},
		{`{url: http://127.0.0.1/, queue_config: {max_shards: 8, min_shards: 4}}`, "", ""},
		{`{url: http://127.0.0.1/, bearer_token: x}`, "", ""},
		{`{url: "http://[::1]:9090/", bearer_token: x}`, "", ""},
		{`{url: "http://[::ffff:127.0.0.2]:9090/", bearer_token: x}`, "", ""},
		{`{url: http://localhost:9090/, basic_auth: {username: x}}`, "", ""},
	} {
		got := mustParse(t, tc.text).Warnings()
		if tc.path == "" {
			if len(got) > 0 {
				t.Errorf("%s: %v", tc.text, got)
			}
			continue
		}
		found := false
		for _, p := range got {
			found = found || p.Path == tc.path && strings.Contains(p.Error(), tc.says)
		}
		if !found {
			t.Errorf("%s: want %q at %q, got %v", tc.text, tc.says, tc.path, got)
		}
	}
}

func TestConfigHeaderTwice(t *testing.T) {
	c, err := parse(`{url: http://h/, headers: {X-A: x, x-a: y}}`)
	if err != nil {
		t.Fatal(err)
	}
	if p := c.Validate(); len(p) != 1 || !strings.Contains(p[0].Error(), "twice") {
		t.Errorf("%v", p)
	}
}

// However an entry is printed, no secret shows.
func TestConfigRedaction(t *testing.T) {
	c, err := parse(`
url: https://user-CANARY:CANARY@h.example/push?token=CANARY
headers: {X-Api-Key: CANARY, x-scope-orgid: tenant}
authorization: {credentials: CANARY}
proxy_url: http://CANARY:CANARY@proxy/?x=CANARY
http_headers: {X-B: {secrets: [CANARY], values: [CANARY]}, X-Scope-OrgID: {values: [tenant2]}}
oauth2:
  client_id: id
  client_secret: CANARY
  client_certificate_key: CANARY
  token_url: https://CANARY:CANARY@idp.example/token?x=CANARY
  endpoint_params: {client_assertion: CANARY, audience: plant}
  proxy_url: http://CANARY:CANARY@proxy/
  tls_config: {key: CANARY, cert: public}
tls_config: {key: CANARY, cert: public}
`)
	if err != nil {
		t.Fatal(err)
	}
	y, err := yaml.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"yaml":     string(y),
		"url":      fmt.Sprintf("%v %+v %#v %s", c.URL, c.URL, c.URL, c.TargetName()),
		"headers":  fmt.Sprintf("%v %+v %#v", c.Headers, c.Headers, c.Headers),
		"problems": fmt.Sprint(c.Validate(), c.Warnings()),
	} {
		if strings.Contains(text, "CANARY") {
			t.Errorf("%s shows a secret:\n%s", name, text)
		}
	}
	for _, open := range []string{"tenant", "tenant2", "https://h.example/push", "http://proxy/", "https://idp.example/token", "audience: plant"} {
		if !strings.Contains(string(y), open) {
			t.Errorf("%s, which is no secret, is missing:\n%s", open, y)
		}
	}
	if c.HTTP.OAuth2.EndpointParams["client_assertion"] != "CANARY" || c.HTTP.HTTPHeaders.Headers["X-B"].Values[0] != "CANARY" || c.HTTP.ProxyURL.User == nil {
		t.Error("showing the entry has changed it")
	}
	for _, bad := range []string{"https://u:CANARY@h:port/", "https://u:CAN/ARY@h/%zz", "://CANARY"} {
		if _, err := parse("url: " + `"` + bad + `"`); err == nil || strings.Contains(err.Error(), "CAN") {
			t.Errorf("%s: error is %v", bad, err)
		}
	}
}

func TestBytes(t *testing.T) {
	for _, tc := range []struct {
		in   string
		want Bytes
		out  string
	}{
		{"0", 0, "0B"}, {"4096", 4096, "4KiB"}, {"1000", 1000, "1000B"}, {"2GiB", 2 << 30, "2GiB"}, {"2GB", 2 << 30, "2GiB"},
		{"512MiB", 512 << 20, "512MiB"}, {"512 MiB", 512 << 20, "512MiB"}, {"1.5KiB", 1536, "1536B"}, {"0.5GiB", 512 << 20, "512MiB"},
		{"7TiB", 7 << 40, "7TiB"}, {"10B", 10, "10B"}, {"9223372036854775807", 1<<63 - 1, "9223372036854775807B"},
		{"8388607TiB", 8388607 << 40, "8388607TiB"},
	} {
		got, err := ParseBytes(tc.in)
		if err != nil || got != tc.want || got.String() != tc.out {
			t.Errorf("ParseBytes(%q) = %d (%s), %v", tc.in, got, got, err)
		}
		if again, err := ParseBytes(got.String()); err != nil || again != got {
			t.Errorf("%s does not read back: %d, %v", got, again, err)
		}
	}
	for _, bad := range []string{"", "x", "-1", "-1GiB", "1Gi", "1gib", "GiB", "1e400", "NaN", "Inf", "9223372036854775808", "8388608TiB", "1.2.3MiB", "1 000"} {
		if got, err := ParseBytes(bad); err == nil {
			t.Errorf("ParseBytes(%q) = %d", bad, got)
		}
	}
	y, err := yaml.Marshal(Bytes(1 << 30))
	if err != nil || strings.TrimSpace(string(y)) != "1GiB" {
		t.Errorf("marshalled as %q, %v", y, err)
	}
}

func TestCredentialFiles(t *testing.T) {
	c := mustParse(t, `{url: http://h/, basic_auth: {username_file: u, password_file: p}, tls_config: {ca_file: ca, cert_file: /c, key_file: k}, http_headers: {B: {files: [b]}, A: {files: [a]}}}`)
	c.SetDirectory("/d")
	if got := strings.Join(c.CredentialFiles(), " "); got != "/d/ca /c /d/k /d/u /d/p /d/a /d/b" {
		t.Error(got)
	}
	if got := mustParse(t, `{url: http://h/, bearer_token: x}`).CredentialFiles(); len(got) > 0 {
		t.Error(got)
	}
}

// TestSetDirectoryOfEachFile: every key that names a file is relative to the directory, also one that a new version of Prometheus' library
// brings.
func TestSetDirectoryOfEachFile(t *testing.T) {
	var c Config
	var names []*string
	fill(reflect.ValueOf(&c).Elem(), &names)
	c.HTTP.HTTPHeaders = &promconfig.Headers{Headers: map[string]promconfig.Header{"X": {Files: []string{"file"}}}}
	names = append(names, &c.HTTP.HTTPHeaders.Headers["X"].Files[0])
	if len(names) < 15 {
		t.Errorf("only %d names of files were found", len(names))
	}
	c.SetDirectory("dir")
	for i, name := range names {
		if *name != filepath.Join("dir", "file") {
			t.Errorf("the name of file %d of %d is %q", i, len(names), *name)
		}
	}
	if got := c.CredentialFiles(); len(got) != len(names) {
		t.Errorf("%d of %d files are listed: %q", len(got), len(names), got)
	}
}

// fill makes all parts of a configuration exist, names a file in each field for one, and returns pointers to these names.
func fill(v reflect.Value, names *[]*string) {
	for i := range v.NumField() {
		f, name := v.Field(i), v.Type().Field(i).Name
		if !f.CanSet() {
			continue
		}
		switch {
		case f.Kind() == reflect.String && (strings.HasSuffix(name, "File") || strings.HasSuffix(name, "Path")):
			f.SetString("file")
			*names = append(*names, f.Addr().Interface().(*string))
		case f.Kind() == reflect.Struct:
			fill(f, names)
		case f.Kind() == reflect.Pointer && f.Type().Elem().Kind() == reflect.Struct && f.Type().Elem().PkgPath() != "net/url":
			f.Set(reflect.New(f.Type().Elem()))
			fill(f.Elem(), names)
		}
	}
}
