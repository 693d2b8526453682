package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"

	"hwsagent/internal/redact"
	"hwsagent/internal/tools/reference"
	"hwsagent/probes/catalog"
	"hwsagent/receivers/scrape"
	remoteconfig "hwsagent/remotewrite/config"
)

// foreignKeys describes keys whose fields other modules declare.
func foreignKeys() map[string]string {
	return map[string]string{
		"authorization":          "as in Prometheus",
		"basic_auth":             "as in Prometheus",
		"bearer_token":           "as in Prometheus",
		"bearer_token_file":      "a file with the token; read every two seconds",
		"enable_http2":           "as in Prometheus",
		"follow_redirects":       "no effect: redirects are never followed",
		"http_headers":           "further headers, with `values`, `secrets` or `files`; those that the protocol sets are refused",
		"no_proxy":               "as in Prometheus",
		"oauth2":                 "as in Prometheus, both grants; [OAuth2](../remote-write.md#credentials)",
		"proxy_connect_header":   "headers for the proxy's CONNECT",
		"proxy_from_environment": "use `HTTP_PROXY`, `HTTPS_PROXY`, `NO_PROXY`",
		"proxy_url":              "`http`, `https`, `socks5` or `socks5h`",
		"tls_config":             "as in Prometheus, files or inline; `*_ref` is refused",
	}
}

// page collects the reference of the configuration.
type page struct {
	strings.Builder
	t        *testing.T
	comments *reference.Comments
	skip     []reflect.Type // structs whose keys stand elsewhere
}

// TestReference holds docs/reference/configuration.md to the types that a configuration is decoded into, their
// comments and their defaults. A key without a description fails it.
func TestReference(t *testing.T) {
	comments, err := reference.NewComments("../..")
	if err != nil {
		t.Fatal(err)
	}
	p := &page{t: t, comments: comments, skip: []reflect.Type{reflect.TypeFor[scrape.Global]()}}
	p.WriteString("# Keys of agent.yaml\n\nGenerated from the code: `make reference`. [configuration.md](../configuration.md) explains files, values and reload.\n")
	sections := map[string]func(k redact.Key){
		"probes":       p.probes,
		"receivers":    p.receivers,
		"remote_write": p.remoteWrite,
		"scrape_configs": func(redact.Key) {
			p.WriteString("As in Prometheus, with these [differences](../scraping.md#differences-from-prometheus): " + p.scrapeKeys("scrape_configs") + ".\n")
		},
	}
	keys, _ := redact.ShapeOf(reflect.TypeFor[Config]()).Keys()
	for _, k := range keys {
		fmt.Fprintf(p, "\n## %s\n\n", k.Name)
		if write, ok := sections[k.Name]; ok {
			write(k)
			continue
		}
		p.section(reflect.TypeFor[Config](), k)
	}
	if n := strings.Count(p.String(), "\n| `"); n < 200 {
		t.Errorf("the page has only %d keys: the search is broken", n)
	}
	reference.Page(t, "../../docs/reference/configuration.md", p.String(), *update)
}

// section writes the key k of the struct type owner: the table of its own keys, or what it is.
func (p *page) section(owner reflect.Type, k redact.Key) {
	if k.Shape.Type.Kind() != reflect.Struct {
		fmt.Fprintf(p, "%s.\n", p.describe(owner, k))
		return
	}
	value := reflect.ValueOf(defaults()).Elem().FieldByIndex(k.Index)
	if value.Kind() == reflect.Pointer {
		value = reflect.Value{}
	}
	p.head()
	p.rows(k.Shape, "", value)
	if k.Name == "global" {
		p.WriteString("\nDefaults of scrape jobs, as in Prometheus: " + p.scrapeKeys("global") + ".\n")
	}
}

func (p *page) probes(k redact.Key) {
	p.WriteString("Keys of every probe:\n\n")
	p.head()
	p.rows(redact.ShapeOf(reflect.TypeFor[Probe]()), "", reflect.Value{})
	for _, kind := range catalog.Names() {
		fmt.Fprintf(p, "\n### probe %s\n\n", kind)
		p.head()
		p.rows(redact.ShapeOf(reflect.TypeOf(newSettings(kind))), "", reflect.Value{})
	}
}

func (p *page) receivers(redact.Key) {
	tables := []struct {
		title string
		t     reflect.Type
	}{
		{"Keys of every listener", reflect.TypeFor[Listener]()},
		{"Keys of every receiver; of `otlp`, beside `http` and `grpc`", reflect.TypeFor[Intake]()},
		{"Also of `pushgateway`", reflect.TypeFor[Pushgateway]()},
		{"Also of `otlp`", reflect.TypeFor[OTLP]()},
	}
	for i, one := range tables {
		if i > 0 {
			p.WriteString("\n")
		}
		fmt.Fprintf(p, "%s:\n\n", one.title)
		p.head()
		p.rows(redact.ShapeOf(one.t), "", reflect.Value{})
		p.skip = append(p.skip, one.t)
	}
}

func (p *page) remoteWrite(redact.Key) {
	p.WriteString("[remote-write.md](../remote-write.md) explains targets and answers.\n\n")
	p.head()
	p.rows(redact.ShapeOf(reflect.TypeFor[remoteconfig.Config]()), "", reflect.ValueOf(remoteconfig.DefaultConfig()))
}

func (p *page) head() { p.WriteString("| key | default | |\n|---|---|---|\n") }

// rows writes a row for each key of shape, and for the keys below it. defaults is the value of a default
// configuration, or the zero Value.
func (p *page) rows(shape redact.Shape, prefix string, defaults reflect.Value) {
	keys, _ := shape.Keys()
	for _, k := range keys {
		if k.Shape.Type.Kind() == reflect.Interface && shape.Type == reflect.TypeFor[remoteconfig.Config]() {
			continue // it exists only to be refused by name
		}
		owner, field := ownerOf(shape.Type, k.Index)
		if slices.Contains(p.skip, owner) || slices.Contains(p.skip, bare(k.Shape.Type)) {
			continue
		}
		value := reflect.Value{}
		if defaults.IsValid() {
			value, _ = defaults.FieldByIndexErr(k.Index)
		}
		inner, suffix := nested(k.Shape.Type)
		text, def, _ := strings.Cut(p.text(owner, field, k), "; default ")
		if shown := shownDefault(value); shown != "" {
			if def != "" {
				p.t.Errorf("%s%s: its comment repeats the default %s", prefix, k.Name, shown)
			}
			def = "`" + shown + "`"
		} else if def != "" && !strings.ContainsAny(def, " `") {
			def = "`" + def + "`"
		}
		if text == "" && inner == nil {
			p.t.Errorf("%s%s: %s.%s has no comment", prefix, k.Name, owner, field.Name)
		}
		fmt.Fprintf(p, "| `%s%s` | %s | %s |\n", prefix, k.Name, def, text)
		if inner != nil {
			if value.IsValid() && value.Kind() != reflect.Struct {
				value = reflect.Value{}
			}
			p.rows(redact.ShapeOf(inner), prefix+k.Name+suffix+".", value)
		}
	}
}

// text returns what a key means.
func (p *page) text(owner reflect.Type, field reflect.StructField, k redact.Key) string {
	text, err := p.comments.Field(owner, field.Name)
	if err != nil {
		p.t.Fatal(err)
	}
	switch {
	case text != "" && k.Name != "bearer_token_file":
	case text == "" && !p.comments.Ours(owner):
		text = foreignKeys()[k.Name]
	case text == "" && strings.HasSuffix(k.Name, "relabel_configs"):
		text = "rules, as in Prometheus"
	}
	if slices.Contains(clouds(), bare(k.Shape.Type)) {
		keys, _ := k.Shape.Keys()
		for i, inner := range keys {
			text += []string{": ", ", "}[min(i, 1)] + "`" + inner.Name + "`"
		}
	}
	return text
}

func (p *page) describe(owner reflect.Type, k redact.Key) string {
	f := owner.FieldByIndex(k.Index)
	text := p.text(owner, f, k)
	if text == "" {
		p.t.Errorf("%s: %s.%s has no comment", k.Name, owner, f.Name)
	}
	return text
}

// scrapeKeys lists the keys that Prometheus documents, by the schema: of an entry of a list, or those of global that
// concern only scraping.
func (p *page) scrapeKeys(section string) string {
	text, err := Schema()
	if err != nil {
		p.t.Fatal(err)
	}
	var schema struct {
		Defs       map[string]struct{ Properties map[string]any } `json:"$defs"`
		Properties map[string]struct {
			Ref   string `json:"$ref"`
			Items struct {
				Ref string `json:"$ref"`
			}
		}
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		p.t.Fatal(err)
	}
	s := schema.Properties[section]
	keys := slices.Sorted(maps.Keys(schema.Defs[strings.TrimPrefix(s.Ref+s.Items.Ref, "#/$defs/")].Properties))
	if section == "global" {
		own, _ := redact.ShapeOf(reflect.TypeFor[Global]()).Keys()
		keys = slices.DeleteFunc(keys, func(key string) bool {
			return slices.ContainsFunc(own, func(k redact.Key) bool {
				owner, _ := ownerOf(reflect.TypeFor[Global](), k.Index)
				return k.Name == key && owner != reflect.TypeFor[scrape.Global]()
			})
		})
	}
	if len(keys) < 10 {
		p.t.Errorf("%s has only %d keys: the search is broken", section, len(keys))
	}
	return "`" + strings.Join(keys, "`, `") + "`"
}

// ownerOf returns the struct that declares the field at index in t.
func ownerOf(t reflect.Type, index []int) (reflect.Type, reflect.StructField) {
	for _, i := range index[:len(index)-1] {
		t = bare(t.Field(i).Type)
	}
	return t, t.Field(index[len(index)-1])
}

func bare(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// clouds are the types whose keys are exactly those of Prometheus.
func clouds() []reflect.Type {
	return []reflect.Type{reflect.TypeFor[remoteconfig.SigV4](), reflect.TypeFor[remoteconfig.AzureAD](), reflect.TypeFor[remoteconfig.GoogleIAM]()}
}

// nested returns the struct of this module whose keys stand below a key of type t, and how a list is marked.
func nested(t reflect.Type) (inner reflect.Type, suffix string) {
	t = bare(t)
	if t.Kind() == reflect.Slice {
		t, suffix = bare(t.Elem()), "[]"
	}
	if t.Kind() != reflect.Struct || !strings.HasPrefix(t.PkgPath(), "hwsagent/") || textForm(t) || fixedWords(t) != nil || slices.Contains(clouds(), t) {
		return nil, ""
	}
	return t, suffix
}

// shownDefault returns a default as it is written in a file; "" if there is none, or if it is empty, 0 or false.
func shownDefault(v reflect.Value) string {
	if !v.IsValid() || v.IsZero() || !v.CanInterface() {
		return ""
	}
	switch x := v.Interface().(type) {
	case model.Duration:
		return x.String()
	case fmt.Stringer:
		return x.String()
	}
	switch v.Kind() {
	case reflect.String, reflect.Int, reflect.Int64, reflect.Uint, reflect.Bool, reflect.Float64:
		return fmt.Sprint(v.Interface())
	}
	return ""
}
