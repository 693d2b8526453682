package snmp

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/config"

	"hwsagent/probes"
)

// parseYML parses an snmp.yml. Of modules that want rejects it reads only the names. The mistakes it
// returns have places, and no text that may be a secret.
func parseYML(name string, text []byte, want func(string) bool) (*ymlFile, []*Note) {
	return newSource(name, text).read(want)
}

func all(string) bool { return true }

// aMetric is the rest of a module around one metric with the given lines.
func aMetric(lines string) string {
	return "modules:\n  m:\n    walk: [1.3.6]\n    metrics:\n    - name: x\n      oid: 1.3.6.1\n      type: gauge\n" + lines
}

// An error in a file is reported with its line, its column and the remedy.
func TestBrokenFiles(t *testing.T) {
	for _, tc := range []struct{ name, text, at, says string }{
		{"no YAML", "modules:\n  m: [\n", "", "cannot be read as YAML"},
		{"not text", "\xff\xfe", "", "not UTF-8"},
		{"a list at the top", "- a\n", "1:1", "must be a mapping"},
		{"modules are a list", "modules: [a]\n", "1:10", "modules must be a mapping"},
		{"a module is text", "modules: {m: text}\n", "1:14", `module "m" must be a mapping`},
		{"names for OIDs", "modules:\n  m:\n    walk: [ifTable]\n", "3:12", `"ifTable", not an OID; write it in numbers`},
		{"a metric without name", "modules:\n  m:\n    metrics:\n    - oid: 1.3\n      type: gauge\n", "4:7", "no name"},
		{"a metric without OID", "modules:\n  m:\n    metrics:\n    - name: x\n      type: gauge\n", "4:7", "no oid"},
		{"a metric without type", "modules:\n  m:\n    metrics:\n    - name: x\n      oid: 1.3\n", "4:7", `the type "" is not known`},
		{"a type from a newer exporter", "modules:\n  m:\n    metrics:\n    - name: x\n      oid: 1.3\n      type: Histogram\n", "6:13", `"Histogram" is not known here; write one of gauge, counter`},
		{"an OID of one arc", aMetric("")[:strings.Index(aMetric(""), "1.3.6.1")] + "1\n      type: gauge\n", "6:12", "not an OID"},
		{"an index of a type that is none", aMetric("      indexes: [{labelname: a, type: Bits}]\n"), "8:38", `"Bits" is not known`},
		{"an index without label", aMetric("      indexes: [{type: gauge}]\n"), "8:17", "needs labelname and type"},
		{"a size that no OID holds", aMetric("      indexes: [{labelname: a, type: OctetString, fixed_size: 4000000000}]\n"), "8:63", "from 0 to 128"},
		{"a label that Prometheus keeps", aMetric("      indexes: [{labelname: __name__, type: gauge}]\n"), "8:29", "does not begin with __"},
		{"a lookup without OID", aMetric("      lookups: [{labels: [a], labelname: b}]\n"), "8:17", "needs an oid"},
		{"a lookup without label", aMetric("      lookups: [{labels: [a], oid: 1.3}]\n"), "8:17", "needs a labelname"},
		{"an enumeration by name", aMetric("      enum_values: {up: 1}\n"), "8:21", `"up", not a number`},
		{"an expression", aMetric("      regex_extracts: {X: [{regex: '('}]}\n"), "8:36", "RE2"},
		{"a scale", aMetric("      scale: ten\n"), "8:14", `"ten", not a number`},
		{"a key twice", aMetric("      scale: 1\n      scale: 2\n"), "9:7", "there twice"},
		{"retries", "modules:\n  m:\n    retries: -1\n", "3:14", "from 0 to 100"},
		{"timeout", "modules:\n  m:\n    timeout: fast\n", "3:14", "not a time above 0"},
		{"truth", "modules:\n  m:\n    allow_nonincreasing_oids: maybe\n", "3:31", "not true or false"},
		{"a filter without OID", "modules:\n  m:\n    filters: [{targets: [1.3.6]}]\n", "3:15", "a filter needs an oid"},
		{"a filter's expression", "modules:\n  m:\n    filters: [{oid: 1.3.6, values: ['[']}]\n", "3:37", "RE2"},
		{"a static filter's row", "modules:\n  m:\n    filters: {static: [{targets: [1.3.6], indices: [a]}]}\n", "3:53", "not numbers"},
		{"a login's version", "auths:\n  a:\n    version: 4\n", "3:14", "not a version of SNMP"},
		{"a login without user", "auths:\n  a:\n    version: 3\n", "2:3", "needs a username"},
		{"a login without password", "auths:\n  a: {version: 3, username: u, security_level: authPriv, priv_password: p}\n", "2:3", "authPriv needs a password"},
		{"a login without second password", "auths:\n  a: {version: 3, username: u, security_level: authPriv, password: p}\n", "2:3", "needs a priv_password"},
		{"a login's level", "auths:\n  a: {version: 3, username: u, security_level: high}\n", "2:3", "security_level"},
		{"a login's protocols", "auths:\n  a: {version: 3, username: u, security_level: authNoPriv, password: p, auth_protocol: SHA3}\n", "2:3", "auth_protocol"},
		{"an old login", "m:\n  walk: [1.3.6]\n  version: 3\n", "1:1", "needs a username"},
		{"an alias of itself", "modules: &a\n  m: *a\n", "", "not known"},
		{"aliases of aliases", bomb(), "", "too large"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f, broken := parseYML("snmp.yml", []byte(tc.text), all)
			var says []string
			for _, n := range append(broken, f.notes...) {
				says = append(says, n.Error())
			}
			text := strings.Join(says, "\n")
			if !strings.Contains(text, tc.says) || !strings.Contains(text, "snmp.yml:"+tc.at) {
				t.Errorf("want %s and %q, got\n%s", tc.at, tc.says, text)
			}
		})
	}
}

// bomb is a file whose aliases stand for 10^10 filters.
func bomb() string {
	var b strings.Builder
	b.WriteString("x0: &x0 [{oid: 1.3.6}]\n")
	for i := 1; i <= 10; i++ {
		fmt.Fprintf(&b, "x%d: &x%d {static: [%s], dynamic: [%s]}\n", i, i, strings.Repeat(fmt.Sprintf("*x%d,", i-1), 10), strings.Repeat(fmt.Sprintf("*x%d,", i-1), 10))
	}
	b.WriteString("modules:\n  m:\n    metrics: &m [" + strings.Repeat("{name: x, oid: 1.3, type: gauge},", 2000) + "]\n")
	for i := range 2000 {
		fmt.Fprintf(&b, "  m%d: {metrics: *m}\n", i)
	}
	return b.String()
}

// Keys that are not known are named and have no effect, so that files of newer exporters load.
func TestUnknownKeys(t *testing.T) {
	f, broken := parseYML("snmp.yml", []byte(aMetric("      colour: red\n")+"    speed: high\nfuture: 1\n"), all)
	if len(broken) > 0 || len(f.modules["m"].metrics) != 1 {
		t.Fatalf("%v", broken)
	}
	var at []string
	for _, n := range f.notes {
		at = append(at, fmt.Sprintf("%d:%d %t", n.Line, n.Column, n.Severe && n.Try != ""))
	}
	slices.Sort(at)
	if diff := cmp.Diff([]string{"10:1 true", "8:7 true", "9:5 true"}, at); diff != "" {
		t.Error(diff)
	}
}

// Sifting keeps the wanted modules, on their lines, in either format, and leaves a text unchanged whose
// lines do not separate the modules.
func TestSift(t *testing.T) {
	only := func(name string) bool { return name == "b" }
	for _, tc := range []struct {
		name, text, want string
		names            []string
	}{
		{"new", "# c\nauths:\n  a:\n    version: 2\nmodules:\n  a:\n    walk:\n    - 1.3\n  b:\n    walk: [1]\n\n  'c':\n    x: 1\nversion: 1\n",
			"# c\nauths:\n  a:\n    version: 2\nmodules:\n\n\n\n  b:\n    walk: [1]\n\n\n\nversion: 1\n", []string{"a", "b", "c"}},
		{"old", "---\na:\n  walk: [1]\nb:\n  walk: [2]\n", "---\n\n\nb:\n  walk: [2]\n", []string{"a", "b"}},
		{"carriage returns", "modules:\r\n  a:\r\n    x: 1\r\n  b:\r\n    x: 2\r\n", "modules:\r\n\n\n  b:\r\n    x: 2\r\n", []string{"a", "b"}},
		{"anchor", "modules:\n  a: &x\n    x: 1\n  b: *x\n", "", nil},
		{"merge", "modules:\n  a:\n    x: 1\n  b:\n    <<: {x: 1}\n", "", nil},
		{"flow", "modules: {a: {x: 1}, b: {x: 2}}\n", "", nil},
		{"flow in a module", "modules:\n  a: {x: 1}\n  b: {x: 2}\n", "", nil},
		{"tabs", "modules:\n\ta:\n", "", nil},
		{"only logins", "auths:\n  a:\n    version: 2\n", "", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := outlineOf([]byte(tc.text))
			if tc.want == "" {
				tc.want = tc.text
			}
			if diff := cmp.Diff(tc.want, string(got.only(only))); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tc.names, got.names); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// write makes a file of modules and returns its path.
func write(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "snmp.yml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const twoLogins = "auths:\n  public_v2: {community: from-file}\n  v3: {version: 3, username: u, security_level: authPriv, password: short, priv_password: tiny, community: public, auth_protocol: SHA, priv_protocol: AES}\nmodules:\n  m:\n    walk: [1.3.6]\n    metrics: [{name: x, oid: 1.3.6.1, type: gauge}]\n  system:\n    get: [1.3.6.1.2.1.1.3.0]\n    metrics: [{name: up, oid: 1.3.6.1.2.1.1.3, type: gauge}]\n"

// The login of a probe: the one that its configuration gives or names, else the default of
// snmp_exporter, else that of the modules in the old format.
func TestWhichLogin(t *testing.T) {
	old := write(t, "m:\n  walk: [1.3.6]\n  version: 1\n  auth: {community: one}\nn:\n  walk: [1.3.6]\n  auth: {community: two}\no:\n  walk: [1.3.6]\n")
	file := write(t, twoLogins)
	for _, tc := range []struct {
		name    string
		file    string
		auth    Auth
		modules []string
		want    Auth
		err     string
	}{
		{"named", file, Auth{Name: "v3"}, []string{"m"}, Auth{Version: 3, Username: "u", SecurityLevel: authPriv, AuthPassword: "short", PrivPassword: "tiny", AuthProtocol: "SHA", PrivProtocol: "AES"}, ""},
		{"by default", file, Auth{}, []string{"m"}, Auth{Version: 2, Community: "from-file"}, ""},
		{"given", file, Auth{Community: "given"}, []string{"m"}, Auth{Community: "given"}, ""},
		{"unknown", file, Auth{Name: "other"}, []string{"m"}, Auth{}, "there are: public_v2, v3"},
		{"old", old, Auth{}, []string{"m", "o"}, Auth{Version: 1, Community: "one"}, ""},
		{"old without", old, Auth{}, []string{"o"}, Auth{}, ""},
		{"old and given", old, Auth{Community: "given"}, []string{"m"}, Auth{Community: "given"}, ""},
		{"old and two", old, Auth{}, []string{"m", "n"}, Auth{}, "logs in otherwise than that of line 1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, err := newPlan(&Config{ConfigFiles: []string{tc.file}, Auth: tc.auth, Modules: tc.modules})
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil || p.auth != tc.want {
				t.Errorf("%+v, %v", p.auth, err)
			}
		})
	}
}

// A module of a file takes precedence over the built-in one, a later file over an earlier one, and
// both are reported; a change of the files' content changes the version.
func TestWhichModule(t *testing.T) {
	first := write(t, twoLogins)
	second := write(t, "modules:\n  m:\n    metrics: [{name: later, oid: 1.3.6.1, type: gauge}]\n")
	c := &Config{ConfigFiles: []string{first, second}, Modules: []string{"m", "system", "if_mib"}}
	p, err := newPlan(c)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range p.modules {
		names = append(names, m.metrics[0].name)
	}
	if diff := cmp.Diff([]string{"later", "up", "ifNumber"}, names); diff != "" {
		t.Error(diff)
	}
	notes, err := c.Examine()
	text := fmt.Sprint(notes, err)
	for _, want := range []string{"system is read in place of the built-in one", "m replaces that of " + first + ":5"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in %s", want, text)
		}
	}
	if err := os.WriteFile(second, []byte("# a comment\nmodules:\n\n  m:\n    metrics: [{name: later, oid: 1.3.6.1, type: gauge}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	same, _ := newPlan(c)
	if err := os.WriteFile(second, []byte("modules:\n  m:\n    metrics: [{name: another, oid: 1.3.6.1, type: gauge}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	other, _ := newPlan(c)
	if same.version != p.version || other.version == p.version || p.version == "" {
		t.Errorf("versions %s, %s, %s", p.version, same.version, other.version)
	}
	for _, bad := range []*Config{
		{ConfigFiles: []string{first}, Modules: []string{"mm"}},
		{ConfigFiles: []string{filepath.Join(t.TempDir(), "*.yml")}, Modules: []string{"m"}},
		{ConfigFiles: []string{t.TempDir()}, Modules: []string{"m"}},
	} {
		if _, err := newPlan(bad); err == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}

// No error, note or log line has a secret of the file, whatever is wrong with it.
func TestSecretsOfFiles(t *testing.T) {
	const canary = "CANARY7f3a"
	login := "{community: " + canary + ", username: u, password: " + canary + ", priv_password: " + canary + "}"
	for i, text := range []string{
		"auths:\n  a: " + login + "\n  a: " + login + "\nmodules:\n  m: {walk: [1.3.6]}\n",
		"auths:\n  a: " + canary + "\n", "auths:\n  a: [" + canary + "]\n", "auths:\n  a: {" + canary + ": 1}\n", "auths: " + canary + "\n",
		"auths:\n  a: {version: " + canary + "}\n", "auths:\n  a: {community: {x: " + canary + "}}\n", "auths:\n  a: {community: *" + canary + "}\n",
		"auths:\n  a: {version: 3, security_level: " + canary + ", username: u}\n", "auths:\n  a: {community: \"" + canary + "\n",
		"auths:\n  a: {version: 3, security_level: authNoPriv, username: u, password: " + canary + ", auth_protocol: " + canary + "}\n",
		"m:\n  walk: [1.3.6]\n  auth: " + canary + "\n", "m:\n  walk: [1.3.6]\n  version: 9\n  auth: " + login + "\n",
		"auths:\n  a: {community: " + strings.Repeat(canary, 20) + "}\n",
	} {
		f, broken := parseYML("snmp.yml", []byte(text), all)
		if said := fmt.Sprint(broken, f.notes); strings.Contains(said, canary) {
			t.Errorf("%d: %s", i, said)
		}
		if len(broken)+len(f.notes) == 0 {
			t.Errorf("%d: nothing is wrong: %s", i, text)
		}
	}
	// A login referred to by name is redacted from a device's texts, like one in the configuration.
	path := write(t, "auths:\n  a: {community: "+canary+"}\nmodules:\n  m: {walk: [1.3.6], metrics: []}\n")
	p, err := New(Config{Target: "127.0.0.1:1", ConfigFiles: []string{path}, Auth: Auth{Name: "a"}, Modules: []string{"m"}}, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if said := p.hide.Secrets().Error(errors.New("the device says " + canary)).Error(); strings.Contains(said, canary) {
		t.Error(said)
	}
	if p.session.auth.Community != config.Secret(canary) {
		t.Error("the probe does not log in with the file's login")
	}
}

// FuzzYML: any file loads or has its errors reported; a loaded file reads any table without a panic.
func FuzzYML(f *testing.F) {
	f.Add([]byte(twoLogins), []byte{1, 2, 3, 4})
	f.Add([]byte(aMetric("      indexes: [{labelname: a, type: InetAddress}]\n      lookups: [{labels: [a], labelname: b, oid: 1.3.6.1, type: LldpPortId}]\n      regex_extracts: {X: [{regex: '(.*)'}]}\n      display_hint: '*1d.:'\n")), []byte{0xff, 0})
	f.Add([]byte("m:\n  walk: [1.3.6]\n  auth: {community: x}\n  metrics: [{name: x, oid: 1.3.6, type: Bits, enum_values: {0: a, 99: b}}]\n"), []byte{7})
	f.Add([]byte("modules: &a {m: {<<: *a, filters: {static: [{targets: [1.3], indices: [1]}]}}}\n"), []byte{})
	f.Fuzz(func(t *testing.T, text, value []byte) {
		if len(text) > 1<<16 {
			return
		}
		f, broken := parseYML("snmp.yml", text, all)
		if len(broken) > maxYMLNotes+1 || len(f.notes) > maxYMLNotes {
			t.Fatalf("%d mistakes, %d notes", len(broken), len(f.notes))
		}
		if len(broken) > 0 {
			return
		}
		for name, m := range f.modules {
			h := newHarvest()
			for _, x := range m.metrics {
				at := mustOID(x.oid)
				_ = h.add(valued(append(slices.Clip(at), oidOf(value[:min(len(value), 64)])...), value))
				_ = h.add(valued(append(slices.Clip(at), 1), len(value)))
			}
			newEmitter(compile(name, m.module)).emit(h, probes.NewRound(0))
		}
	})
}

// Probes of one configuration share the modules of a file.
func TestPlansAreShared(t *testing.T) {
	var plans Plans
	c := Config{ConfigFiles: []string{write(t, twoLogins)}, Modules: []string{"m", "system"}}
	made := make([]*Probe, 3)
	for i, target := range []string{"a", "b", "c"} {
		c.Target = target
		if i == 2 {
			c.Modules = []string{"m"}
		}
		p, err := plans.New(c, nil, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if made[i] = p; p.session.endpoint.host != target || p.session.auth.Community != "from-file" {
			t.Errorf("%s is asked with %+v", p.session.endpoint, p.session.auth)
		}
	}
	if made[0].modules[0].module != made[1].modules[0].module || made[1].modules[0].module != made[2].modules[0].module {
		t.Error("a module is there twice")
	}
	if made[1].Version() != made[0].Version() || made[2].Version() == made[0].Version() {
		t.Error("the version is not that of the modules in use")
	}
}
