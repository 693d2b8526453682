package kubernetes

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// checkFieldSelector refuses an invalid field selector. Valid are path=value, path==value or path!=value, with commas
// between them; a backslash escapes a comma, equals sign or backslash.
func checkFieldSelector(text string) error {
	for _, part := range splitPlain(text, ',') {
		if part == "" {
			continue
		}
		if !hasOperator(part) {
			return fmt.Errorf("%q is not like path=value, path==value or path!=value", part)
		}
		_, value, _ := strings.Cut(strings.Replace(part, "==", "=", 1), "=")
		if err := checkEscapes(value); err != nil {
			return fmt.Errorf("%q: %w", part, err)
		}
	}
	return nil
}

// splitPlain splits text at a character that is not escaped by a backslash.
func splitPlain(text string, at byte) (parts []string) {
	start := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case at:
			parts = append(parts, text[start:i])
			start = i + 1
		}
	}
	return append(parts, text[start:])
}

func hasOperator(part string) bool { return strings.Contains(part, "=") }

// checkEscapes refuses a value with an invalid escape, or with an unescaped equals sign.
func checkEscapes(value string) error {
	for i := 0; i < len(value); i++ {
		switch value[i] {
		case '\\':
			i++
			if i == len(value) || !strings.ContainsRune(`\,=`, rune(value[i])) {
				return errors.New(`a \ stands before a comma, an equals sign or another \ only`)
			}
		case '=', ',':
			return errors.New(`write \= for an equals sign in a value`)
		}
	}
	return nil
}

// The characters of labels (https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set).
var (
	labelPrefix = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	labelName   = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`)
	wholeNumber = regexp.MustCompile(`^[-+]?[0-9]+$`)
)

const (
	maxLabelPrefix = 253
	maxLabelName   = 63
)

func checkLabelKey(key string) error {
	name := key
	if prefix, rest, ok := strings.Cut(key, "/"); ok {
		if len(prefix) > maxLabelPrefix || !labelPrefix.MatchString(prefix) {
			return fmt.Errorf("%q is not a label name: the part before the / must be a DNS name", key)
		}
		name = rest
	}
	if len(name) > maxLabelName || !labelName.MatchString(name) {
		return fmt.Errorf("%q is not a label name", key)
	}
	return nil
}

func checkLabelValue(value string) error {
	if value != "" && (len(value) > maxLabelName || !labelName.MatchString(value)) {
		return fmt.Errorf("%q is not a label value", value)
	}
	return nil
}

// labelTerms match one requirement of a label selector: those with a set, and the others.
var (
	inSet    = regexp.MustCompile(`^(\S+)\s+(in|notin)\s*\(([^()]*)\)$`)
	compared = regexp.MustCompile(`^([^\s=!<>()]+)\s*(==|=|!=|<|>)\s*([^\s=!<>()]*)$`)
	existing = regexp.MustCompile(`^(!?)\s*([^\s=!<>()]+)$`)
)

// checkLabelSelector refuses an invalid label selector. Valid is for example a=b, c!=d, e in (f, g), !h, i.
func checkLabelSelector(text string) error {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	for _, term := range splitTerms(text) {
		term = strings.TrimSpace(term)
		if err := checkLabelTerm(term); err != nil {
			return err
		}
	}
	return nil
}

// splitTerms splits at commas outside of parentheses.
func splitTerms(text string) (parts []string) {
	start, depth := 0, 0
	for i := range len(text) {
		switch text[i] {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				parts = append(parts, text[start:i])
				start = i + 1
			}
		}
	}
	return append(parts, text[start:])
}

func checkLabelTerm(term string) error {
	if m := inSet.FindStringSubmatch(term); m != nil {
		if err := checkLabelKey(m[1]); err != nil {
			return err
		}
		for _, v := range strings.Split(m[3], ",") {
			if err := checkLabelValue(strings.TrimSpace(v)); err != nil {
				return err
			}
		}
		return nil
	}
	if m := compared.FindStringSubmatch(term); m != nil {
		if (m[2] == "<" || m[2] == ">") && !wholeNumber.MatchString(m[3]) {
			return fmt.Errorf("%q: < and > need a whole number", term)
		}
		return errors.Join(checkLabelKey(m[1]), checkLabelValue(m[3]))
	}
	if m := existing.FindStringSubmatch(term); m != nil {
		return checkLabelKey(m[2])
	}
	return fmt.Errorf("%q is not like name=value, name!=value, name in (a, b), name notin (a, b), name or !name", term)
}
