package config

import (
	"net/url"
	"reflect"
	"slices"
	"strings"

	promconfig "github.com/prometheus/common/config"
	"go.yaml.in/yaml/v4"

	"hwsagent/internal/redact"
	"hwsagent/probes/snmp"
	"hwsagent/receivers/scrape"
)

const hidden = redact.Mark

// masked returns the scalar at path in the form that may be shown. The type of the place alone decides; a value without
// such a place is not shown.
func (d *document) masked(path, value string) string {
	kind, known := d.kindAt(path)
	switch {
	case value == "":
		return ""
	case kind == redact.Secret, !known:
		return hidden
	case kind == redact.Address, kind == redact.Path:
		return redact.URL(value)
	}
	return value
}

// kindAt returns how a scalar at path may be shown; known is false if the types have no such place. A scalar in place of a
// mapping or list with secrets is a secret itself.
func (d *document) kindAt(path string) (kind redact.Kind, known bool) {
	shapes := d.shapesAt(path)
	for _, s := range shapes {
		switch {
		case s.Type.Kind() == reflect.Interface:
			return redact.Plain, false
		case s.Kind == redact.Secret, composite(s) && s.Holds():
			return redact.Secret, true
		}
		kind = max(kind, s.Kind)
	}
	return kind, len(shapes) > 0
}

// composite reports whether a mapping or list belongs there.
func composite(s redact.Shape) bool {
	k := s.Type.Kind()
	return s.Kind == redact.Plain && (k == reflect.Struct || k == reflect.Map || k == reflect.Slice)
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
		if inner, ok := shapeUnder(s, step); ok {
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
	if s.Type == reflect.TypeFor[Receivers]() {
		if keys, _ := s.Keys(); !slices.ContainsFunc(keys, func(k redact.Key) bool { return k.Name == step }) && !slices.Contains(simpleReceivers(), step) {
			return redact.Shape{}, false
		}
	}
	return s.Under(step)
}

// hiddenKey reports whether the key at that path may be a secret itself: no key belongs below a secret, and a text between
// braces, as in {abc}, is a key without a value.
func (d *document) hiddenKey(path, key string) bool {
	declared := false
	n := d.values[path]
	isNull := n != nil && n.ShortTag() == "!!null"
	for _, s := range d.shapesAt(holder(path, key)) {
		if s.Kind == redact.Secret && s.Type.Kind() != reflect.Map {
			return true
		}
		inner, ok := s.Under(key)
		_, open := s.Keys()
		declared = declared || ok && !(open.Type != nil && inner.Holds())
	}
	return isNull && !declared
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
