package agent

import (
	"encoding"
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"hwsagent/agent/check"
	"hwsagent/agent/convert"
	"hwsagent/agent/demo"
	"hwsagent/agent/follow"
	"hwsagent/agent/hardware"
	"hwsagent/agent/hardware/inventory"
	"hwsagent/agent/hardware/snmptool"
	"hwsagent/agent/inspect"
	"hwsagent/agent/queues"
	"hwsagent/agent/status"
	"hwsagent/internal/tools/reference"
	"hwsagent/internal/version"
	"hwsagent/remotewrite"
)

// jsonOutputs are the values that commands print with --json.
func jsonOutputs() []jsonOutput {
	return []jsonOutput{
		{"`status`, `GET /api/v1/status`", status.Status{}},
		{"`check`", check.Report{}},
		{"`probe NAME`", hardware.ProbeResult{}},
		{"`inventory`: `schema`, and in `inventories` a list of", inventory.Inventory{}},
		{"`record`", hardware.Recorded{}},
		{"`bugreport`: `schema`, `file`, and in `files` a list of", ReportFile{}},
		{"`config convert`", convert.Result{}},
		{"`snmp walk`, a list of", snmptool.Object{}},
		{"`snmp test`", snmptool.Tested{}},
		{"`snmp discover`", snmptool.Found{}},
		{"`snmp import`", snmptool.Imported{}},
		{"`targets`: `schema`, `running`, and in `targets` a list of", status.TargetStatus{}},
		{"`targets test NAME`", check.TargetTest{}},
		{"`targets pause`, `resume`, `skip`, `adopt`, `drop`, `rejected NAME clear`", queues.Change{}},
		{"`targets rejected NAME`", queues.Rejections{}},
		{"a line in `deadletters/NAME/`", remotewrite.Letter{}},
		{"`wal inspect`", inspect.Inspection{}},
		{"`wal verify`", inspect.Verification{}},
		{"`wal replay`", queues.ReplayResult{}},
		{"`events`", EventList{}},
		{"`events ack`", EventsAck{}},
		{"`reload`", Reloaded{}},
		{"`tap`, one value a line", follow.Item{}},
		{"`demo`", demo.Result{}},
		{"`version`", version.Info{}},
	}
}

type jsonOutput struct {
	command string
	value   any
}

// TestReferenceJSON holds docs/reference/status.md to the types that commands print as JSON, and their comments.
func TestReferenceJSON(t *testing.T) {
	comments, err := reference.NewComments("..")
	if err != nil {
		t.Fatal(err)
	}
	p := &jsonPage{t: t, comments: comments, names: map[reflect.Type]string{}}
	p.WriteString("# Status and JSON\n\nGenerated from the code: `make reference`. With `--json` each command prints one JSON value on stdout. Within one `schema`, keys are added, and none is renamed or removed. " +
		"Times are in RFC 3339; `_ns` are nanoseconds, `_seconds` seconds, `_bytes` bytes. Empty values may be left out. A command that fails prints `schema`, `error` and `exit_code`. " +
		"[operate.md](../operate.md) explains states and reasons.\n\n| command | value |\n|---|---|\n")
	for _, o := range jsonOutputs() {
		fmt.Fprintf(p, "| %s | %s |\n", o.command, p.typeText(reflect.TypeOf(o.value)))
	}
	for i := 0; i < len(p.queue); i++ { // which grows meanwhile
		p.table(p.queue[i])
	}
	if p.keys < 250 {
		t.Errorf("found only %d keys: the search is broken", p.keys)
	}
	reference.Page(t, filepath.Join("..", "docs", "reference", "status.md"), p.String(), *update)
}

type jsonPage struct {
	strings.Builder
	t        *testing.T
	comments *reference.Comments
	names    map[reflect.Type]string // of the tables
	queue    []reflect.Type          // the types of the tables, in order
	keys     int
}

// table writes the keys of a struct.
func (p *jsonPage) table(s reflect.Type) {
	fmt.Fprintf(p, "\n## %s\n\n| key | value | |\n|---|---|---|\n", p.names[s])
	p.rows(s)
}

func (p *jsonPage) rows(s reflect.Type) {
	for f := range s.Fields() {
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if key == "" && f.Anonymous {
			inner := f.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			p.rows(inner)
			continue
		}
		if key == "" || key == "-" || !f.IsExported() {
			continue
		}
		text, err := p.comments.Field(s, f.Name)
		if err != nil {
			p.t.Fatal(err)
		}
		fmt.Fprintf(p, "| `%s` | %s | %s |\n", key, p.typeText(f.Type), asKeys(s, text))
		p.keys++
	}
}

// typeText says what stands under a key, and makes a table of a struct of ours.
func (p *jsonPage) typeText(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[time.Time]():
		return "time"
	case t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return "text"
	case t.Kind() == reflect.Slice || t.Kind() == reflect.Array:
		return "list of " + p.typeText(t.Elem())
	case t.Kind() == reflect.Map:
		return "object"
	case t.Kind() == reflect.String:
		return "text"
	case t.Kind() == reflect.Bool:
		return "boolean"
	case t.Kind() == reflect.Struct && p.comments.Ours(t):
		name, ok := p.names[t]
		if !ok {
			name = p.unusedName(t)
			p.names[t], p.queue = name, append(p.queue, t)
		}
		return fmt.Sprintf("[%s](#%s)", name, strings.ToLower(name))
	}
	return "number"
}

// unusedName returns the name of a type, with that of its package if another table has it.
func (p *jsonPage) unusedName(t reflect.Type) string {
	for _, name := range p.names {
		if name == t.Name() {
			return filepath.Base(t.PkgPath()) + t.Name()
		}
	}
	return t.Name()
}

// asKeys names other fields of s in a comment by their keys.
func asKeys(s reflect.Type, text string) string {
	for f := range s.Fields() {
		if key, _, _ := strings.Cut(f.Tag.Get("json"), ","); key != "" && key != "-" {
			text = regexp.MustCompile(`([a-zΣ] |=)`+f.Name+`\b`).ReplaceAllString(text, "$1`"+key+"`")
		}
	}
	return strings.ReplaceAll(text, "nil: ", "absent: ")
}
