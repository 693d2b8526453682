package config

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"hwsagent/internal/redact"
	"hwsagent/probes/catalog"
	remoteconfig "hwsagent/remotewrite/config"
)

// canaryConfig returns a file of testdata as the running agent has it, but for what the
// end-to-end test fills in.
func canaryConfig(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	fill := strings.NewReplacer("http://ECHO/x/${file:DIR/path-token}/phrase", "http://127.0.0.1/x/${TOKEN}/phrase", "${file:DIR/path-token}", "${TOKEN}", "${file:DIR/argument}", "${TOKEN}", "DEVICE", "127.0.0.1:1", "PORT1", "9465", "PORT2", "9466", "WEBFILE", "/etc/web.yml", "ECHO", "echo.example", "SECURE", "secure.example", "PROXY", "proxy.example:3128", "DIR/", "/etc/", "PEM", "pem")
	return []byte(fill.Replace(string(text)))
}

func TestRedacted(t *testing.T) {
	cfg, _, err := LoadBytes("agent.yaml", canaryConfig(t, "canary.yaml"), testEnv)
	if err != nil {
		t.Fatal(err)
	}
	text, err := cfg.Redacted()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(text), "\n") {
		if strings.Contains(line, "CANARY") {
			t.Errorf("a secret shows: %s", line)
		}
	}
	for _, want := range []string{
		"name: v3", "community: <secret>", "X-Scope-OrgID: plant-7", "audience: plant-8", "max_bytes: 2GiB", "sync: 100ms", "scrape_interval: 200ms",
		"proxy_url: http://proxy.example:3128", "token_url: http://echo.example/token", "password_file: /etc/password",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}

// TestCanariesEverywhere: each key that can hold a secret, found by the types of the
// configuration, holds a canary in testdata/canary.yaml, or names a file that does. The
// end-to-end test TestNoSecretShows runs the agent with that.
func TestCanariesEverywhere(t *testing.T) {
	there := map[string]bool{}
	for _, file := range []string{"canary.yaml", "canary-scrape.yaml"} {
		var doc any
		if err := yaml.Load(canaryConfig(t, file), &doc); err != nil {
			t.Fatal(err)
		}
		canaries(doc, "", there)
	}
	if len(there) < 20 {
		t.Fatalf("found only %v", there)
	}
	var want []string
	for _, kind := range catalog.Names() {
		secretKeys(reflect.TypeOf(newSettings(kind)), "probes[]", &want)
	}
	secretKeys(reflect.TypeFor[Config](), "", &want)
	for _, key := range secretShapes(t) {
		if !noSecret(key) {
			want = append(want, key)
		}
	}
	slices.Sort(want)
	want = slices.Compact(want)
	for _, key := range []string{ // the search works
		"probes[].auth.community", "remote_write[].basic_auth.password_file", "remote_write[].headers.*", "remote_write[].http_headers.*.files[]",
		"remote_write[].oauth2.proxy_connect_header.*[]", "remote_write[].oauth2.token_url", "remote_write[].proxy_url", "remote_write[].tls_config.key", "remote_write[].url",
	} {
		if !slices.Contains(want, key) {
			t.Errorf("the search for keys that can hold a secret has not found %s", key)
		}
	}
	for _, key := range want {
		match := regexp.MustCompile("^" + strings.NewReplacer(`\*`, `[^.]+?`).Replace(regexp.QuoteMeta(key)) + "$")
		if !slices.ContainsFunc(keysOf(there), match.MatchString) {
			t.Errorf("%s can hold a secret: give it one in testdata/canary.yaml", key)
		}
	}
}

func keysOf(m map[string]bool) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	return keys
}

// canaries collects the keys below v that hold a canary, or name a file of the tests' own.
func canaries(v any, path string, found map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			canaries(value, strings.TrimPrefix(path+"."+key, "."), found)
		}
	case []any:
		for _, value := range v {
			canaries(value, path+"[]", found)
		}
	case string:
		if strings.Contains(v, "CANARY") || strings.Contains(v, "${TOKEN}") || strings.HasPrefix(v, "/etc/") {
			found[path] = true
		}
	}
}

// noSecrets are keys that look as if they held a secret, and why they do not.
func noSecret(key string) bool {
	switch {
	case strings.HasSuffix(key, "_ref"):
		return true // refused
	case strings.HasSuffix(key, "tls_config.ca_file"), strings.HasSuffix(key, "tls_config.cert_file"):
		return true // public
	case key == "remote_write[].azuread.certificate.certificate_password":
		return true // refused
	case key == "remote_write[].sigv4.access_key":
		return true // a name, sent in clear with each request
	case strings.HasSuffix(key, ".client_certificate_key_id"):
		return true // a name, sent in clear with each assertion
	case key == "web.config_file", strings.HasSuffix(key, ".web_config_file"), key == "probes[].journal_file", strings.HasSuffix(key, ".scrape_failure_log_file"):
		return true // exporter-toolkit's own, with hashes; written by the agent
	case key == "probes[].file_sd_configs[].files[]":
		return true // the path of a list of targets, which check names
	case key == "probes[].target", key == "probes[].targets[]", key == "probes[].static_configs[].targets[]", key == "scrape_configs[].static_configs[].targets[]":
		return true // the label instance; SNMP and scraping refuse one with a user
	case key == "probes[].auth":
		return true // the name of a login in config_files, or of a way to log in
	case strings.HasSuffix(key, ".auth.auth_protocol"), strings.HasSuffix(key, ".auth.priv_protocol"):
		return true
	}
	return false
}

// secretKeys collects the keys of t that can hold a secret.
func secretKeys(t reflect.Type, path string, found *[]string) {
	add := func(key string) {
		if !noSecret(key) {
			*found = append(*found, key)
		}
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	_, key, _ := cutLast(path, ".")
	switch {
	case t.Name() == "Secret", t == reflect.TypeFor[remoteconfig.URL](), t.Name() == "URL":
		add(path)
	case t == reflect.TypeFor[redact.Headers](), key == "endpoint_params":
		add(path + ".*")
	case t.Kind() == reflect.Slice:
		secretKeys(t.Elem(), path+"[]", found)
	case t.Kind() == reflect.Map:
		secretKeys(t.Elem(), path+".*", found)
	case t.Kind() == reflect.Struct && !strings.HasPrefix(t.PkgPath(), "github.com/prometheus/prometheus/"):
		for f := range t.Fields() {
			name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			switch {
			case name == "-" || !f.IsExported():
			case strings.Contains(options, "inline"):
				secretKeys(f.Type, path, found)
			default:
				secretKeys(f.Type, strings.TrimPrefix(path+"."+name, "."), found)
			}
		}
	case t.Kind() == reflect.String && looksSecret(strings.TrimSuffix(key, "[]")):
		add(path)
	}
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return "", s, false
}

// looksSecret judges a key whose type says nothing.
func looksSecret(key string) bool {
	return strings.HasSuffix(key, "_file") || key == "files" || strings.HasSuffix(key, "_url") || key == "values" ||
		regexp.MustCompile(`password|secret|token|credential|community|(^|_)key|auth`).MatchString(key)
}

// The full example holds on a machine that has nothing set up.
func TestExampleConfig(t *testing.T) {
	cfg, warns, err := Load(filepath.Join("..", "..", "deploy", "examples", "full.yaml"), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	if len(warns) != 0 {
		t.Errorf("warnings: %v", warns)
	}
	if len(cfg.RemoteWrite) == 0 || len(cfg.Probes) < 2 {
		t.Errorf("the example shows nothing: %+v", cfg)
	}
}

// A command's environment must not be readable by others.
func TestEnvironmentIsSecret(t *testing.T) {
	const text = "probes:\n  - {name: x, type: exec, command: [/bin/true], env: {DSN: hunter2222}}\n"
	cfg, _, err := LoadBytes("agent.yaml", []byte(text), testEnv)
	if err != nil {
		t.Fatal(err)
	}
	shown, err := cfg.Redacted()
	if err != nil || strings.Contains(string(shown), "hunter2222") {
		t.Errorf("%v\n%s", err, shown)
	}
	_, _, err = LoadBytes("agent.yaml", []byte(strings.Replace(text, "env:", "wrong: 1, env:", 1)), testEnv)
	if err == nil || strings.Contains(err.Error(), "hunter2222") {
		t.Errorf("%v", err)
	}
}
