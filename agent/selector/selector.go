// Package selector reads series selectors as people write them for commands and for the pull endpoint.
package selector

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
)

// Parse reads a series selector in PromQL's syntax: name, {label="value", …} or both, with the operators =, !=,
// =~ and !~. Strings are in double or single quotes, or in backticks. An empty selector selects everything.
func Parse(text string) ([]*labels.Matcher, error) {
	p := parser{text: text, rest: strings.TrimSpace(text)}
	ms, err := p.parse()
	if err != nil {
		return nil, fmt.Errorf(`parse selector %q: %w: write it as in PromQL, such as '{__name__=~"node_.*", job="host"}'`, text, err)
	}
	return ms, nil
}

type parser struct{ text, rest string }

func (p *parser) parse() (ms []*labels.Matcher, err error) {
	if name, braces, found := strings.Cut(p.rest, "{"); !found || strings.TrimSpace(name) != "" {
		name = strings.TrimSpace(name)
		if !found && name == "" {
			return nil, nil
		}
		if !model.LegacyValidation.IsValidMetricName(name) {
			return nil, fmt.Errorf("%q is not a metric name", name)
		}
		ms = append(ms, labels.MustNewMatcher(labels.MatchEqual, model.MetricNameLabel, name))
		if p.rest = braces; !found {
			return ms, nil
		}
	} else {
		p.rest = braces
	}
	for {
		p.space()
		if p.take("}") {
			break
		}
		m, err := p.matcher()
		if err != nil {
			return nil, err
		}
		ms = append(ms, m)
		if p.space(); !p.take(",") && !strings.HasPrefix(p.rest, "}") {
			return nil, fmt.Errorf(`a "," or "}" is missing before %q`, p.rest)
		}
	}
	if p.space(); p.rest != "" {
		return nil, fmt.Errorf("unexpected %q after the selector", p.rest)
	}
	return ms, nil
}

func (p *parser) space() { p.rest = strings.TrimLeft(p.rest, " \t\n") }

// take consumes a token if it comes next.
func (p *parser) take(token string) (ok bool) {
	p.rest, ok = strings.CutPrefix(p.rest, token)
	return ok
}

func (p *parser) matcher() (*labels.Matcher, error) {
	end := strings.IndexAny(p.rest, "=!~ \t\n,}\"'`")
	if end < 0 {
		end = len(p.rest)
	}
	name := p.rest[:end]
	if !model.LegacyValidation.IsValidLabelName(name) {
		return nil, fmt.Errorf("%q is not a label name", name)
	}
	p.rest = p.rest[end:]
	p.space()
	kind, ok := labels.MatchEqual, true
	switch {
	case p.take("=~"):
		kind = labels.MatchRegexp
	case p.take("!~"):
		kind = labels.MatchNotRegexp
	case p.take("!="):
		kind = labels.MatchNotEqual
	default:
		ok = p.take("=")
	}
	if !ok {
		return nil, fmt.Errorf("=, !=, =~ or !~ is missing after %s", name)
	}
	p.space()
	value, err := p.quoted()
	if err != nil {
		return nil, fmt.Errorf("value of %s: %w", name, err)
	}
	return labels.NewMatcher(kind, name, value)
}

// quoted reads a string in quotes.
func (p *parser) quoted() (string, error) {
	if p.rest == "" || !strings.Contains("\"'`", p.rest[:1]) {
		return "", fmt.Errorf("it must be quoted")
	}
	quote := p.rest[0]
	for i := 1; i < len(p.rest); i++ {
		switch c := p.rest[i]; {
		case c == '\\' && quote != '`':
			i++
		case c == quote:
			inner := p.rest[1:i]
			p.rest = p.rest[i+1:]
			if quote == '`' {
				return inner, nil
			}
			return unquote(inner, quote)
		}
	}
	return "", fmt.Errorf("missing closing %c", quote)
}

// unquote undoes the escapes of Go, which PromQL has.
func unquote(s string, quote byte) (string, error) {
	var b strings.Builder
	for s != "" {
		r, multi, tail, err := strconv.UnquoteChar(s, quote)
		if err != nil {
			return "", fmt.Errorf("%q has an invalid escape", s)
		}
		if s = tail; multi {
			b.WriteRune(r)
		} else {
			b.WriteByte(byte(r))
		}
	}
	return b.String(), nil
}
