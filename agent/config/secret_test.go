package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"hwsagent/internal/redact"
	"hwsagent/probes/catalog"
	"hwsagent/receivers/scrape"
)

// place of a configuration that can hold a secret: the steps to it, as shown by name.
type secretPlace struct {
	steps []string // keys; "-" is the first entry of a list
	probe string   // of a place below probes, the type of the probe
	shape redact.Shape
}

func (p secretPlace) String() string {
	return strings.ReplaceAll(strings.Join(p.steps, "."), ".-", "[]") + strings.TrimSuffix(" ("+p.probe+")", " ()")
}

// text returns a configuration with value at the place.
func (p secretPlace) text(value string) string {
	var b strings.Builder
	indent, inList := "", false
	line := func(s string) {
		lead := indent
		if inList {
			lead, inList = indent[2:]+"- ", false
		}
		b.WriteString(lead + s + "\n")
	}
	for i, step := range p.steps {
		last := i == len(p.steps)-1
		switch {
		case step == "-" && last:
			line("- " + value)
		case step == "-":
			indent, inList = indent+"  ", true
			if i == 1 && p.probe != "" {
				line("type: " + p.probe)
			}
		case last:
			line(step + ": " + value)
		default:
			line(step + ":")
			indent += "  "
		}
	}
	return b.String()
}

// eachShape calls visit for each place of the configuration, by its types, until that does not want to
// go deeper. A new key is among them by itself.
func eachShape(t *testing.T, visit func(secretPlace) (deeper bool)) {
	t.Helper()
	var walk func(steps []string, probe string, s redact.Shape)
	walk = func(steps []string, probe string, s redact.Shape) {
		if len(steps) > 9 {
			t.Fatalf("no end at %v", steps)
		}
		if !visit(secretPlace{append([]string(nil), steps...), probe, s}) {
			return
		}
		under := func(step string, inner redact.Shape) { walk(append(steps, step), probe, inner) }
		if s.Type.Kind() == reflect.Map {
			inner, _ := s.Under("X-Name")
			under("X-Name", inner)
			return
		}
		if inner, ok := s.Elem(); ok && s.Type.Kind() == reflect.Slice {
			under("-", inner)
			return
		}
		keys, open := s.Keys()
		for _, k := range keys {
			under(k.Name, k.Shape)
		}
		if open.Type != nil {
			inner, _ := s.Under("X-Name")
			under("X-Name", inner)
		}
	}
	walk(nil, "", redact.ShapeOf(reflect.TypeFor[Config]()))
	for _, kind := range catalog.Names() {
		walk([]string{"probes", "-"}, kind, redact.ShapeOf(reflect.TypeOf(newSettings(kind))))
	}
	walk([]string{"scrape_configs", "-"}, "", redact.ShapeOf(scrape.Schema()))
}

// secretPlaces returns all places that hold a secret, or a mapping or list with one.
func secretPlaces(t *testing.T) (all []secretPlace) {
	t.Helper()
	eachShape(t, func(p secretPlace) bool {
		if p.shape.Holds() && len(p.steps) > 0 {
			all = append(all, p)
		}
		return p.shape.Holds()
	})
	if len(all) < 100 {
		t.Fatalf("found only %d places", len(all))
	}
	return all
}

// secretShapes returns the keys of all values that are not shown as they are, or name a file with such a
// value: with [] for a list and * for a key that a person chooses.
func secretShapes(t *testing.T) (keys []string) {
	t.Helper()
	eachShape(t, func(p secretPlace) bool {
		if k := p.shape.Type.Kind(); p.shape.Kind != redact.Plain && k != reflect.Slice && k != reflect.Map {
			keys = append(keys, strings.NewReplacer(".-", "[]", "X-Name", "*").Replace(strings.Join(p.steps, ".")))
			return false
		}
		return true
	})
	return keys
}

// wrongTexts are values of another type than is wanted, or that YAML reads otherwise than a person
// who pastes a password expects. Each has CANARY in it.
func wrongTexts() map[string]string {
	return map[string]string{
		"text":      `Bearer CANARY`,
		"quoted":    `"Bearer CANARY"`,
		"list":      `[CANARY, x]`,
		"lists":     `[[CANARY]]`,
		"mapping":   `{user: CANARY}`,
		"key":       `{CANARY}`,
		"mappings":  `{X: {Y: CANARY}}`,
		"as a key":  `{CANARY: x}`,
		"alias":     `*CANARY`,
		"anchor":    `&CANARY`,
		"tag":       `!CANARY x`,
		"tagged":    `!!int CANARY`,
		"binary":    `!!binary CANARY`,
		"literal":   `|CANARY`,
		"directive": `%CANARY`,
		"at":        `@CANARY`,
		"backtick":  "`CANARY",
		"open":      `{CANARY`,
		"open list": `[CANARY`,
		"open text": `"CANARY`,
		"escape":    `"CANARY\C"`,
		"two":       `CANARY: CANARY`,
		"address":   `http://user:CANARY@h h/?CANARY#CANARY`,
		"port":      `http://user:CANARY`,
		"slash":     `http://user:CA/CANARY@h/`,
		"no host":   `user:CANARY@h?CANARY`,
		"unset":     `CANARY${NO_SUCH_VARIABLE}`,
	}
}

// flow returns what text does, as one line in flow style with a further mistake; quote is put around each key.
func (p secretPlace) flow(value, quote string) string {
	text := value
	for i := len(p.steps) - 1; i >= 0; i-- {
		switch p.steps[i] {
		case "-":
			if i == 1 && p.probe != "" {
				text = fmt.Sprintf("{%stype%s: %q, %s", quote, quote, p.probe, strings.TrimPrefix(text, "{"))
			}
			text = "[" + text + "]"
		default:
			text = "{" + quote + p.steps[i] + quote + ": " + text + "}"
		}
	}
	return strings.TrimSuffix(text, "}") + ", " + quote + "bogus" + quote + ": 1}"
}

// forms returns the configuration with value at the place in each format: lines, flow style and JSON.
func (p secretPlace) forms(value string) []string {
	forms := []string{p.text(value), p.flow(value, ""), p.flow(value, `"`)}
	if quoted, err := json.Marshal(value); err == nil {
		forms = append(forms, p.flow(string(quoted), `"`))
	}
	return forms
}

// saidOf returns everything that loading a configuration says; mistaken reports whether it has a mistake.
func saidOf(text string, env func(string) (string, bool)) (said string, mistaken bool) {
	_, warns, err := LoadBytes("agent.yaml", []byte(text), env)
	said = fmt.Sprint(warns)
	if err != nil {
		said += err.Error() + fmt.Sprintf("%+v", err)
	}
	return said, err != nil
}

// TestNoMistakeShowsASecret: whatever is wrong with a key that can hold a secret, the message does not repeat its
// value.
func TestNoMistakeShowsASecret(t *testing.T) {
	if testing.Short() {
		t.Skip("left out with -short: one goroutine, of which the race detector has nothing to say")
	}
	mistakes := 0
	for _, p := range secretPlaces(t) {
		for name, wrong := range wrongTexts() {
			if p.shape.Kind == redact.Address && !strings.Contains(wrong, "://") && !strings.Contains(wrong, "@h") {
				continue // an address may be shown but for its secret parts
			}
			if isKey := name == "as a key" || name == "two" && p.steps[len(p.steps)-1] == "-"; isKey && (p.shape.Kind != redact.Secret || p.shape.Type.Kind() == reflect.Map) {
				continue // keys are no secrets where keys belong
			}
			for _, text := range p.forms(wrong) {
				said, mistaken := saidOf(text, testEnv)
				if mistaken {
					mistakes++
				}
				if strings.Contains(said, "CANARY") {
					t.Errorf("%s with %s: a secret shows:\n%s\n%s", p, name, said, text)
				}
			}
		}
	}
	if mistakes < 8000 {
		t.Errorf("only %d configurations had a mistake", mistakes)
	}
}

// TestNoMisspeltKeyShowsItsValue: the value of a key that the configuration does not have may be anything.
func TestNoMisspeltKeyShowsItsValue(t *testing.T) {
	if testing.Short() {
		t.Skip("left out with -short: one goroutine, of which the race detector has nothing to say")
	}
	keys := 0
	eachShape(t, func(p secretPlace) bool {
		last := len(p.steps) - 1
		if last < 0 || p.steps[last] == "-" || p.steps[last] == "X-Name" {
			return true
		}
		keys++
		p.steps[last] += "x" // a copy that is this call's own
		for _, value := range []string{"CANARY", `{a: ["CANARY"]}`, "http://h/CANARY"} {
			for _, text := range p.forms(value)[1:] {
				if said, mistaken := saidOf(text, testEnv); !mistaken || strings.Contains(said, "CANARY") {
					t.Errorf("%s: mistaken %v, and it says:\n%s\n%s", p, mistaken, said, text)
				}
			}
		}
		return true
	})
	if keys < 300 {
		t.Errorf("only %d keys were tried", keys)
	}
}

// TestNoMessageShowsAVariable: what a variable holds may be a secret, at whichever key it is.
func TestNoMessageShowsAVariable(t *testing.T) {
	if testing.Short() {
		t.Skip("left out with -short: one goroutine, of which the race detector has nothing to say")
	}
	keys, mistakes := 0, 0
	for _, value := range []string{"CANARY", "C4NX", "9464946", "no: CANARY", "http://CANARY:CANARY/", "CANARY\n\"'CANARY"} {
		env := func(string) (string, bool) { return value, true }
		eachShape(t, func(p secretPlace) bool {
			if len(p.steps) == 0 || composite(p.shape) && p.steps[len(p.steps)-1] == "-" {
				return true
			}
			keys++
			for _, text := range p.forms("${TOKEN}")[2:] {
				said, mistaken := saidOf(text, env)
				if mistaken {
					mistakes++
				}
				for _, part := range []string{value, "CANARY"} {
					if strings.Contains(said, part) {
						t.Errorf("%s: the value %q of a variable shows:\n%s\n%s", p, value, said, text)
					}
				}
			}
			return true
		})
	}
	if keys < 2000 || mistakes < 2000 {
		t.Errorf("only %d keys were tried, and %d configurations had a mistake", keys, mistakes)
	}
}

// TestWrongTypeOfASecretSaysWhatIsWanted: the value is not told, but what belongs there is, with an
// example.
func TestWrongTypeOfASecretSaysWhatIsWanted(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"remote_write: [{url: http://h/w, authorization: Bearer CANARY}]", `want a mapping \(lines of key: value\), got text\n.*as in authorization: \{credentials_file: /etc/hwsagent/token\}`},
		{"remote_write: [{url: http://h/w, basic_auth: CANARY}]", `got text\n.*as in basic_auth: \{username: NAME, password_file: /etc/hwsagent/password\}`},
		{"remote_write: [{url: http://h/w, oauth2: 123456}]", `got a number\n.*as in oauth2: \{client_id: ID, client_secret_file: `},
		{"remote_write: [{url: http://h/w, headers: 'X-Key: CANARY'}]", `got text\n.*as in headers: \{X-Name: value\}`},
		{"remote_write: [{url: http://h/w, http_headers: {X-Key: CANARY}}]", `got text\n.*as in X-Key: \{files: \[/etc/hwsagent/value\]\}`},
		{"remote_write: [{url: http://h/w, tls_config: CANARY}]", `got text\n.*as in tls_config: \{ca_file: `},
		{"remote_write: [{url: http://h/w, bearer_token: [CANARY]}]", `want a text, got a list`},
		{"probes: [{type: snmp, target: h, auth: CANARY}]", `auth.*: is the name of a login, but no config_files are given`},
		{"probes: [{type: exec, command: [/x], env: CANARY}]", `got text\n.*as in env: \{NAME: value\}`},
		{"scrape_configs: [{job_name: j, authorization: Bearer CANARY}]", `want a mapping \(lines of key: value\), got text\n.*as in authorization: \{credentials_file: `},
	} {
		_, _, err := LoadBytes("agent.yaml", []byte(tc.text), testEnv)
		if err == nil || !regexp.MustCompile(tc.want).MatchString(err.Error()) || strings.Contains(err.Error(), "CANARY") {
			t.Errorf("%s: want %s, got\n%v", tc.text, tc.want, err)
		}
	}
}

// TestDescriptionHidesSecrets: a description has no secret of a configuration, in whichever place it is and whether or not the
// configuration has mistakes.
func TestDescriptionHidesSecrets(t *testing.T) {
	const secret = "s3cr3t-of-a-configuration"
	file := filepath.Join(t.TempDir(), "agent.yaml")
	places := 0
	eachShape(t, func(p secretPlace) bool {
		if p.shape.Kind != redact.Secret || len(p.steps) == 0 {
			return true
		}
		places++
		if err := os.WriteFile(file, []byte(p.text(secret)), 0o600); err != nil {
			t.Fatal(err)
		}
		if text := Describe(file, os.LookupEnv); bytes.Contains(text, []byte(secret)) {
			t.Errorf("%s is in the description:\n%s", p, text)
		}
		return false
	})
	if places < 20 {
		t.Errorf("only %d places of secrets were tried", places)
	}
}
