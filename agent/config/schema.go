package config

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	promconfig "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/relabel"

	"hwsagent/internal/redact"
	"hwsagent/probes/catalog"
	"hwsagent/probes/self"
	"hwsagent/probes/snmp"
	"hwsagent/receivers/scrape"
	remoteconfig "hwsagent/remotewrite/config"
)

// Schema returns the JSON schema (draft 2020-12) of a configuration file, for editors. It is derived from the types
// that the file is decoded into, and so has exactly their keys. It covers kinds of values and fixed words; `hwsagent
// check` covers the other rules. A value may be ${VAR} wherever the file allows it. The output of one program is always
// the same.
func Schema() ([]byte, error) {
	s := &schemas{defs: map[string]any{}}
	top := s.object(redact.ShapeOf(reflect.TypeFor[Config]()))
	top["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	top["title"] = "hwsagent's agent.yaml"
	top["$defs"] = s.defs
	b, err := json.MarshalIndent(top, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write the schema: %w", err)
	}
	return append(b, '\n'), nil
}

// schemas collects the schemas of types; those of structs have names by which others refer to them.
type schemas struct{ defs map[string]any }

type schemaNode = map[string]any

// of returns the schema of a value of that shape. Any value may be left empty, which is null in YAML.
func (s *schemas) of(shape redact.Shape) any {
	t := shape.Type
	if words := fixedWords(t); words != nil {
		return schemaNode{"anyOf": []any{schemaNode{"enum": words}, variable, null}}
	}
	switch {
	case t == reflect.TypeFor[Probe]():
		return s.refer(t, func() any { return s.probe(shape) })
	case t == reflect.TypeFor[ScrapeConfig]():
		return s.of(redact.ShapeOf(scrape.Schema()))
	case t == reflect.TypeFor[Receivers]():
		return s.refer(t, func() any { return s.receivers(shape) })
	case t == reflect.TypeFor[snmp.Auth](): // or the name of one
		return schemaNode{"anyOf": []any{s.refer(t, func() any { return s.object(shape) }), schemaNode{"type": "string"}}}
	case textForm(t):
		return schemaNode{"type": []string{"string", "number", "boolean", "null"}}
	}
	switch t.Kind() {
	case reflect.Struct:
		return s.refer(t, func() any { return s.object(shape) })
	case reflect.Map:
		return schemaNode{"type": []string{"object", "null"}, "additionalProperties": s.of(redact.ShapeOf(t.Elem()))}
	case reflect.Slice:
		return schemaNode{"type": []string{"array", "null"}, "items": s.of(redact.ShapeOf(t.Elem()))}
	case reflect.Bool:
		return schemaNode{"anyOf": []any{schemaNode{"type": "boolean"}, variable, null}}
	case reflect.Float32, reflect.Float64:
		return schemaNode{"anyOf": []any{schemaNode{"type": "number"}, variable, null}}
	case reflect.Int, reflect.Int32, reflect.Int64:
		return schemaNode{"anyOf": []any{schemaNode{"type": "integer"}, variable, null}}
	case reflect.Uint, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return schemaNode{"anyOf": []any{schemaNode{"type": "integer", "minimum": 0}, variable, null}}
	}
	return true // such as a claim of OAuth2: any value
}

var (
	null     = schemaNode{"type": "null"}
	variable = schemaNode{"type": "string", "pattern": `\$\{`}
)

// refer names the schema of a type and returns a reference to it.
func (s *schemas) refer(t reflect.Type, make func() any) any {
	module := strings.TrimSuffix(reflect.TypeFor[Config]().PkgPath(), "agent/config")
	name := strings.ReplaceAll(strings.TrimPrefix(t.PkgPath(), module), "/", ".") + "." + t.Name()
	if t.Name() == "" {
		return make()
	}
	if _, ok := s.defs[name]; !ok {
		s.defs[name] = true // a type may contain itself
		s.defs[name] = make()
	}
	return schemaNode{"$ref": "#/$defs/" + name}
}

// object is the schema of a mapping with the keys of a struct.
func (s *schemas) object(shape redact.Shape) schemaNode {
	keys, open := shape.Keys()
	properties := schemaNode{}
	for _, k := range keys {
		if shape.Type == reflect.TypeFor[remoteconfig.Config]() && k.Shape.Type.Kind() == reflect.Interface {
			continue // the key exists only to be refused by name
		}
		properties[k.Name] = s.of(k.Shape)
	}
	more := any(false)
	if open.Type != nil {
		more = s.of(open)
	}
	return schemaNode{"type": []string{"object", "null"}, "properties": properties, "additionalProperties": more}
}

// receivers returns the schema of the section receivers.
func (s *schemas) receivers(shape redact.Shape) any {
	whole := s.object(shape)
	for _, name := range simpleReceivers() {
		whole["properties"].(schemaNode)[name] = s.of(redact.ShapeOf(reflect.TypeFor[Receiver]()))
	}
	whole["additionalProperties"] = false
	return whole
}

// probe returns the schema of an entry of probes, whose type decides which keys it has beside the common ones.
func (s *schemas) probe(shape redact.Shape) any {
	common := s.object(shape)["properties"].(schemaNode)
	var cases []any
	for _, kind := range catalog.Names() {
		properties := schemaNode{}
		theirs := s.object(redact.ShapeOf(reflect.TypeOf(newSettings(kind))))["properties"].(schemaNode)
		for _, some := range []schemaNode{theirs, common} {
			for key, v := range some {
				properties[key] = v
			}
		}
		properties["type"] = schemaNode{"const": kind}
		cases = append(cases, schemaNode{
			"if":   schemaNode{"properties": schemaNode{"type": schemaNode{"const": kind}}, "required": []string{"type"}},
			"then": schemaNode{"properties": properties, "additionalProperties": false},
		})
	}
	return schemaNode{"type": "object", "required": []string{"type"}, "properties": schemaNode{"type": schemaNode{"enum": catalog.Names()}}, "allOf": cases}
}

// fixedWords returns the words that a value of type t may have; nil if t is no such type.
func fixedWords(t reflect.Type) []string {
	switch t {
	case reflect.TypeFor[self.Level]():
		return []string{string(self.Brief), string(self.Full)}
	case reflect.TypeFor[remoteconfig.Refusal]():
		return []string{string(remoteconfig.RefusalHold), string(remoteconfig.RefusalDrop)}
	case reflect.TypeFor[remoteconfig.CatchUp]():
		return []string{string(remoteconfig.InOrder), string(remoteconfig.LiveFirst)}
	case reflect.TypeFor[remoteconfig.Compression]():
		return []string{string(remoteconfig.CompressionSnappy), string(remoteconfig.CompressionZstd)}
	case reflect.TypeFor[remoteconfig.StartAt]():
		return []string{string(remoteconfig.StartNow), string(remoteconfig.StartOldest)}
	case reflect.TypeFor[promconfig.TLSVersion]():
		var words []string
		for name := range promconfig.TLSVersions {
			words = append(words, name)
		}
		slices.Sort(words)
		return words
	case reflect.TypeFor[model.ValidationScheme]():
		return []string{model.LegacyValidation.String(), model.UTF8Validation.String()}
	}
	return nil
}

// textForm reports whether a value of type t is written as a single string, number or boolean, which its own code
// reads.
func textForm(t reflect.Type) bool {
	if t.Kind() == reflect.String {
		return true
	}
	switch t {
	case reflect.TypeFor[model.Duration](), reflect.TypeFor[SyncMode](), reflect.TypeFor[remoteconfig.Bytes](), reflect.TypeFor[relabel.Regexp](), reflect.TypeFor[remoteconfig.URL](), reflect.TypeFor[promconfig.URL]():
		return true
	}
	_, reads := reflect.PointerTo(t).MethodByName("UnmarshalText")
	return reads
}
