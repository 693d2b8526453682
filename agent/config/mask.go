package config

import (
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"

	promconfig "github.com/prometheus/common/config"
	"go.yaml.in/yaml/v4"

	"hwsagent/internal/redact"
	"hwsagent/probes/catalog"
	"hwsagent/probes/snmp"
	"hwsagent/receivers/scrape"
	remoteconfig "hwsagent/remotewrite/config"
)

const hidden = redact.Mark

// masked returns the scalar at path in the form that may be shown. The type of the place decides; names of keys decide
// only where the configuration's types have no such place.
func (d *document) masked(path, value string) string {
	kind, known := d.kindAt(path)
	switch {
	case value == "":
		return ""
	case kind == redact.Secret, !known && d.nameIsSecret(path):
		return hidden
	case kind == redact.Address, kind == redact.Path:
		return redact.URL(value)
	}
	return redact.Text(value)
}

// kindAt returns how a scalar at path may be shown; known is false if the types do not say. A scalar in place of a
// mapping or list with secrets is a secret itself.
func (d *document) kindAt(path string) (kind redact.Kind, known bool) {
	shapes := d.shapesAt(path)
	for _, s := range shapes {
		if s.Type.Kind() == reflect.Interface {
			return redact.Plain, false
		}
		if composite(s) && s.Holds() && !entries(s, strings.HasSuffix(path, "]")) {
			return redact.Secret, true
		}
		kind = max(kind, s.Kind)
		if s.Kind == redact.Secret {
			return s.Kind, true
		}
	}
	return kind, len(shapes) > 0
}

// shapesAt returns the shapes of the value at path: two if a probe's entry also has the keys of its type, none if the
// shape is unknown.
func (d *document) shapesAt(path string) []redact.Shape {
	if path == "" {
		return []redact.Shape{redact.ShapeOf(reflect.TypeFor[Config]())}
	}
	if found, ok := d.shapes[path]; ok {
		return found
	}
	parent := parentPath(path)
	step := strings.TrimPrefix(path[len(parent):], ".")
	var next []redact.Shape
	for _, s := range d.shapesAt(parent) {
		inner, ok := shapeUnder(s, step)
		if !ok && d.credential(parent, s) {
			inner, ok = misspelt(s, step)
		} else if !ok && (s.Kind == redact.Plain && anyKey(s) || composite(s) && s.Type.Kind() == reflect.Slice) && s.Holds() && !entries(s, strings.HasSuffix(parent, "]")) {
			inner, ok = secretShape(), true // a list in place of a mapping, or the reverse
		}
		if ok {
			next = append(next, inner)
		}
	}
	if len(next) == 1 && next[0].Type == reflect.TypeFor[ScrapeConfig]() {
		next = []redact.Shape{redact.ShapeOf(scrape.Schema())}
	}
	if len(next) == 1 && next[0].Type == reflect.TypeFor[Probe]() {
		if n := d.value(path + ".type"); n != nil {
			if s := newSettings(n.Value); s != nil {
				next = append(next, redact.ShapeOf(reflect.TypeOf(s)))
			}
		}
	}
	d.shapes[path] = next
	return next
}

func shapeUnder(s redact.Shape, step string) (redact.Shape, bool) {
	if strings.HasPrefix(step, "[") {
		return s.Elem()
	}
	if step == "<<" { // a merged mapping's keys belong to this one
		return s, true
	}
	return s.Under(step)
}

// credential reports whether the mapping at path holds credentials: it is not a list entry and one of its own keys is a
// secret, or it is azuread, which has a mapping for each way to log in.
func (d *document) credential(path string, s redact.Shape) bool {
	keys, _ := s.Keys()
	return path != "" && !strings.HasSuffix(path, "]") && s.Kind == redact.Plain &&
		(s.Type == reflect.TypeFor[remoteconfig.AzureAD]() || slices.ContainsFunc(keys, func(k redact.Key) bool { return k.Shape.Kind == redact.Secret }))
}

// misspelt returns the shape for a key that a mapping of credentials does not have: the shape of the key most likely
// meant, or a secret.
func misspelt(s redact.Shape, key string) (redact.Shape, bool) {
	if meant := nearestOf(s, key); meant != "" {
		return s.Under(meant)
	}
	return secretShape(), true
}

func secretShape() redact.Shape {
	return redact.Shape{Type: reflect.TypeFor[string](), Kind: redact.Secret}
}

// composite reports whether a mapping or list belongs there.
func composite(s redact.Shape) bool {
	k := s.Type.Kind()
	return s.Kind == redact.Plain && (k == reflect.Struct || k == reflect.Map || k == reflect.Slice)
}

// anyKey reports whether a mapping with freely chosen keys belongs there.
func anyKey(s redact.Shape) bool {
	_, open := s.Keys()
	return open.Type != nil
}

// entries reports whether s is a list of jobs, targets or probes, or an entry of one; inList says which. A plain text
// in its place is not secret by itself.
func entries(s redact.Shape, inList bool) bool {
	if inList {
		return s.Type.Kind() == reflect.Struct
	}
	return s.Type.Kind() == reflect.Slice && s.Type.Elem().Kind() != reflect.String && s.Type.Elem() != reflect.TypeFor[promconfig.Secret]() && s.Kind == redact.Plain
}

// hiddenKey reports whether the key at that path may be a secret itself: no key belongs below a secret, and {abc} in
// place of credentials is a key without a value.
func (d *document) hiddenKey(path, key string) bool {
	parent := holder(path, key)
	for _, s := range d.shapesAt(parent) {
		inner, known := s.Under(key)
		switch {
		case s.Kind == redact.Secret && s.Type.Kind() != reflect.Map:
			return true
		case composite(s) && s.Type.Kind() == reflect.Slice && !entries(s, false) && s.Holds():
			return true
		case anyKey(s) && known && inner.Holds():
			return d.isNull(path)
		case s.Kind == redact.Plain && !known && d.credential(parent, s):
			return d.isNull(path) && nearestOf(s, key) == ""
		}
	}
	return false
}

func (d *document) isNull(path string) bool {
	n := d.values[path]
	return n != nil && n.ShortTag() == "!!null"
}

// nearestOf returns the key of s most likely meant by key, or "".
func nearestOf(s redact.Shape, key string) string {
	keys, _ := s.Keys()
	var names []string
	for _, k := range keys {
		names = append(names, k.Name)
	}
	return nearest(key, names)
}

// nameIsSecret judges a place that the configuration's types do not have: a misspelt key, or one of another program.
func (d *document) nameIsSecret(path string) bool {
	steps := strings.Split(listStep.ReplaceAllString(path, ""), ".")
	for i, s := range steps {
		if secretKey(s) {
			return true
		}
		below := i+1 < len(steps)
		if below && (s == "endpoint_params" || s == "env") {
			return true
		}
		if s == "http_headers" && i+2 < len(steps) && steps[i+2] == "values" && !redact.OpenHeader(steps[i+1]) {
			return true
		}
		if below && (s == "headers" || s == "proxy_connect_header") && !redact.OpenHeader(strings.Join(steps[i+1:], ".")) {
			return true
		}
	}
	return false
}

// secretKey reports whether the name of a key says that its value is secret. Keys ending in _file or _ref only refer to
// a secret.
func secretKey(key string) bool {
	for _, end := range []string{"_file", "_ref", "_url", "_id"} {
		if strings.HasSuffix(key, end) {
			return false
		}
	}
	for _, known := range []string{
		"password", "bearer_token", "credentials", "client_secret", "client_certificate_key", "community",
		"auth_password", "priv_password", "key", "secret", "secret_key", "secrets", "authorization",
	} {
		if key == known || len(known) > 5 && distance(key, known) <= len(known)/4 {
			return true
		}
	}
	for _, part := range []string{"passw", "passphrase", "secret", "token", "credential", "api_key", "apikey"} {
		if strings.Contains(key, part) {
			return true
		}
	}
	return false
}

// maskTree masks the scalars below path that must not be shown, in the configuration in force.
func maskTree(d *document, path string, n *yaml.Node) {
	switch n.Kind {
	case yaml.ScalarNode:
		if m := d.masked(path, n.Value); m != n.Value {
			n.Value, n.Tag = m, "!!str"
		}
	case yaml.SequenceNode:
		for _, item := range n.Content {
			maskTree(d, path+"[0]", item)
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			// A rule's regex may look like a URL, but holds no secret.
			if key := n.Content[i].Value; !strings.HasSuffix(key, "relabel_configs") {
				maskTree(d, path+"."+key, n.Content[i+1])
			}
		}
	}
}

// cutTree cuts secrets out of all scalars.
func cutTree(s *redact.Secrets, n *yaml.Node) {
	if n.Kind == yaml.ScalarNode {
		n.Value = s.Cut(n.Value)
	}
	for _, inner := range n.Content {
		cutTree(s, inner)
	}
}

// rawKey matches a key and the text after it on a line of a file that cannot be parsed.
var rawKey = regexp.MustCompile(`^([\s{\[-]*["']?)([^\s"':{}\[\],]+)(["']?\s*:(?:\s+|$))`)

// keyInFlow matches further keys on such a line.
var keyInFlow = regexp.MustCompile(`([{,]\s*["']?)([^\s"':{}\[\],]+)(["']?\s*:\s)`)

// rawSource returns a line of a file that cannot be parsed, without possible secrets: everything after a key that holds
// one, and everything below such a key by its indentation. hid reports whether it removed any.
func (d *document) rawSource(line int) (text string, hid bool) {
	text = strings.TrimRight(d.lines[line-1], "\r")
	indent := indentOf(text)
	for i := line - 2; i >= 0 && indent > 0; i-- {
		above := d.lines[i]
		if strings.TrimSpace(above) == "" || indentOf(above) >= indent {
			continue
		}
		indent = indentOf(above)
		if m := rawKey.FindStringSubmatch(above); m != nil && d.sensitive(m[2]) {
			m = rawKey.FindStringSubmatch(text)
			if m == nil {
				return hidden, true
			}
			return m[1] + m[2] + m[3] + hidden, true
		}
	}
	m := rawKey.FindStringSubmatchIndex(text)
	cut := -1
	if m != nil && d.sensitive(text[m[4]:m[5]]) {
		cut = m[7]
	}
	for _, m := range keyInFlow.FindAllStringSubmatchIndex(text, -1) {
		if d.sensitive(text[m[4]:m[5]]) && (cut < 0 || m[7] < cut) {
			cut = m[7]
		}
	}
	if cut >= 0 && cut < len(text) {
		return redact.Text(text[:cut]) + hidden, true
	}
	shown := redact.Text(text)
	return shown, shown != text
}

// indentOf returns the indentation of a line; the dash of a list entry counts as space.
func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " -")) }

// sensitive reports whether a key with that name is or holds a secret, in any place.
func (d *document) sensitive(key string) bool {
	if d.keysOfSecrets == nil {
		d.keysOfSecrets = sensitiveKeys()
	}
	return secretKey(key) || d.keysOfSecrets[key]
}

// sensitiveKeys returns the keys in the configuration's types that have a secret below them, except lists of entries,
// which also have much else.
func sensitiveKeys() map[string]bool {
	found := map[string]bool{}
	var walk func(s redact.Shape, depth int)
	walk = func(s redact.Shape, depth int) {
		if e, ok := s.Elem(); ok && s.Type.Kind() == reflect.Slice {
			walk(e, depth)
			return
		}
		keys, open := s.Keys()
		for _, k := range keys {
			entries := k.Shape.Type.Kind() == reflect.Slice && k.Shape.Type.Elem().Kind() != reflect.String && k.Shape.Kind == redact.Plain
			if k.Shape.Holds() && k.Shape.Kind != redact.Address && !entries {
				found[k.Name] = true
			}
			if depth < 9 {
				walk(k.Shape, depth+1)
			}
		}
		if open.Type != nil && s.Type.Kind() == reflect.Struct && depth < 9 {
			walk(open, depth+1)
		}
	}
	for _, t := range []reflect.Type{scrape.Schema(), reflect.TypeFor[Config]()} {
		walk(redact.ShapeOf(t), 0)
	}
	for _, kind := range catalog.Names() {
		walk(redact.ShapeOf(reflect.TypeOf(newSettings(kind))), 0)
	}
	for _, key := range []string{"probes", "remote_write", "scrape_configs", "receivers", "global", "web", "config", "pull", "wal"} {
		delete(found, key) // sections
	}
	return found
}

// example returns a correct example of the credentials at path; "" if none belong there.
func (d *document) example(path string) string {
	name := "KEY"
	if k := d.keys[path]; k != nil {
		name = k.Value
	}
	form := ""
	for _, t := range d.typesAt(path) {
		switch t {
		case reflect.TypeFor[promconfig.Authorization]():
			form = "{credentials_file: /etc/hwsagent/token}"
		case reflect.TypeFor[promconfig.BasicAuth]():
			form = "{username: NAME, password_file: /etc/hwsagent/password}"
		case reflect.TypeFor[promconfig.OAuth2]():
			form = "{client_id: ID, client_secret_file: /etc/hwsagent/secret, token_url: https://host/token}"
		case reflect.TypeFor[promconfig.TLSConfig]():
			form = "{ca_file: /etc/hwsagent/ca.pem}"
		case reflect.TypeFor[redact.Headers]():
			form = "{X-Name: value}"
		case reflect.TypeFor[promconfig.Headers]():
			form = "{X-Name: {files: [/etc/hwsagent/value]}}"
		case reflect.TypeFor[promconfig.Header]():
			form = "{files: [/etc/hwsagent/value]}"
		case reflect.TypeFor[promconfig.ProxyHeader](), reflect.TypeFor[url.Values]():
			form = "{NAME: [value]}"
		case reflect.TypeFor[map[string]promconfig.Secret]():
			form = "{NAME: value}"
		case reflect.TypeFor[snmp.Auth]():
			form = "{community_file: /etc/hwsagent/community}"
		}
	}
	if form == "" {
		return ""
	}
	return name + ": " + form
}
