package rules

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestLogStyle keeps one style in every log line: a constant message that begins with a
// capital letter and ends without a period, snake_case keys, and "err" for errors, as
// Prometheus' own. What varies stands in the attributes.
func TestLogStyle(t *testing.T) {
	methods := map[string]int{ // where the message stands
		"Debug": 0, "Info": 0, "Warn": 0, "Error": 0,
		"DebugContext": 1, "InfoContext": 1, "WarnContext": 1, "ErrorContext": 1,
		"Log": 2, "LogAttrs": 2,
	}
	attributes := []string{"String", "Int", "Int64", "Uint64", "Float64", "Bool", "Time", "Duration", "Any"}
	messageStyle := regexp.MustCompile(`^[A-Z].*[^.!\s]$`)
	keyStyle := regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
	lines := 0
	for _, s := range sources(t, 0) {
		if s.isTest() {
			continue
		}
		key := func(e ast.Expr) {
			if k, ok := text(e); ok && (!keyStyle.MatchString(k) || k == "error") {
				t.Errorf(`%s: the key %q: want snake_case, and "err" for an error`, s.file, k)
			}
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			f, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if pkg, ok := f.X.(*ast.Ident); ok && pkg.Name == "slog" && slices.Contains(attributes, f.Sel.Name) {
				key(call.Args[0])
				return true
			}
			at, ok := methods[f.Sel.Name]
			if !ok || !isLogger(f.X) || len(call.Args) <= at {
				return true
			}
			lines++
			if m, ok := text(call.Args[at]); !ok || !messageStyle.MatchString(m) {
				t.Errorf("%s: the log message %q: want a constant that begins with a capital letter and has no final period", s.file, m)
			}
			for i := at + 1; i < len(call.Args); i += 2 {
				if _, isAttr := call.Args[i].(*ast.CallExpr); isAttr {
					break // slog.Attr values are looked at above
				}
				key(call.Args[i])
			}
			return true
		})
	}
	if lines < 40 {
		t.Errorf("found only %d log lines: the search is broken", lines)
	}
}

// isLogger goes by the name: every logger here is called log or logger.
func isLogger(e ast.Expr) bool {
	name := ""
	switch e := e.(type) {
	case *ast.Ident:
		name = e.Name
	case *ast.SelectorExpr:
		name = e.Sel.Name
	}
	return strings.EqualFold(name, "log") || strings.EqualFold(name, "logger")
}

// text returns the value of a string literal.
func text(e ast.Expr) (string, bool) {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	s, err := strconv.Unquote(lit.Value)
	return s, err == nil
}

// TestErrorStyle: an error's text goes into others, so it begins in lower case (or with a
// name, a value, a key) and ends without a period.
func TestErrorStyle(t *testing.T) {
	errors := 0
	wrong := regexp.MustCompile(`^[A-Z][a-z]|[.!\s]$`)
	for _, s := range sources(t, 0) {
		if s.isTest() {
			continue
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			f, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			pkg, ok := f.X.(*ast.Ident)
			if !ok || pkg.Name+"."+f.Sel.Name != "errors.New" && pkg.Name+"."+f.Sel.Name != "fmt.Errorf" {
				return true
			}
			errors++
			if m, ok := text(call.Args[0]); ok && wrong.MatchString(m) {
				t.Errorf("%s: the error %q: want lower case and no period at the end", s.file, m)
			}
			return true
		})
	}
	if errors < 200 {
		t.Errorf("found only %d errors: the search is broken", errors)
	}
}
