package imports

import (
	"strconv"
	"strings"
)

// assignment is the definition of one name in a MIB, as far as used here: its parent and the arcs below it.
type assignment struct {
	parent string   // the name before the arcs; "" if the first is a number
	arcs   []uint32 // of OBJECT IDENTIFIER: RFC 2578 section 3.5
	macro  string   // OBJECT-TYPE, or "" for OBJECT IDENTIFIER and others
	units  string   // of the clause UNITS
	syntax syntax
	isRow  bool // it has INDEX or AUGMENTS
}

// syntax is the type of an object, as far as used here.
type syntax struct {
	name     string // INTEGER, DisplayString, a type's name; "SEQUENCE" for a table
	enums    map[string]int64
	decimals int // of its DISPLAY-HINT: RFC 2579 section 3.1
}

// module is one module of MIB text.
type module struct {
	name    string
	objects map[string]assignment
	types   map[string]syntax
	imports map[string]string // names and their modules
}

// Bounds of MIB text. The largest files in use have 5 MB.
const (
	maxMIBBytes   = 16 << 20
	maxMIBObjects = 200_000
	maxMIBWord    = 200
	maxSubids     = 128 // RFC 2578 section 3.5
)

// parseMIB parses the modules of a file. It skips parts that it cannot parse: half of the vendors' files
// break some rule.
func parseMIB(text string) (all []*module) {
	r := &mibReader{text: text}
	var m *module
	for r.next(); r.word != ""; r.next() {
		switch r.word {
		case "DEFINITIONS":
			m = &module{name: r.before, objects: map[string]assignment{}, types: map[string]syntax{}, imports: map[string]string{}}
			all = append(all, m)
			r.skipTo("BEGIN")
			continue
		case "MACRO":
			r.skipTo("END")
			continue
		}
		if m == nil || len(m.objects) >= maxMIBObjects {
			continue
		}
		switch r.word {
		case "IMPORTS":
			r.imports(m)
		case "OBJECT":
			name := r.before
			if r.next(); r.word == "IDENTIFIER" {
				if r.next(); r.word == "::=" {
					r.place(m, name, assignment{})
				}
			}
		case "OBJECT-TYPE", "MODULE-IDENTITY", "OBJECT-IDENTITY", "NOTIFICATION-TYPE", "OBJECT-GROUP", "NOTIFICATION-GROUP", "MODULE-COMPLIANCE", "AGENT-CAPABILITIES":
			r.clause(m, r.before, r.word)
		case "::=":
			if name := r.before; name != "" && name[0] >= 'A' && name[0] <= 'Z' {
				m.types[name] = r.typeOf()
			}
		}
	}
	return all
}

// mibReader splits MIB text into words: names, numbers, strings, ::= and punctuation.
type mibReader struct {
	text   string
	word   string // the previous word
	before string // the word before it
	quoted bool
	again  bool // next returns this word once more
}

func isName(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.'
}

func (r *mibReader) next() {
	if r.again {
		r.again = false
		return
	}
	r.before, r.quoted = r.word, false
	r.skipBlanks()
	switch {
	case r.text == "":
		r.word = ""
	case r.text[0] == '"' || r.text[0] == '\'':
		// A quoted word stays a text, even if it looks like a name or a number.
		s, rest, _ := strings.Cut(r.text[1:], r.text[:1])
		r.word, r.text, r.quoted = r.text[:1]+s[:min(len(s), maxMIBWord)], rest, true
	case strings.HasPrefix(r.text, "::="):
		r.word, r.text = "::=", r.text[3:]
	case isName(r.text[0]):
		n := 1
		for n < len(r.text) && isName(r.text[n]) && !strings.HasPrefix(r.text[n:], "--") && !strings.HasPrefix(r.text[n:], "..") {
			n++
		}
		r.word, r.text = r.text[:n], r.text[n:]
	default:
		r.word, r.text = r.text[:1], r.text[1:]
	}
}

// skipBlanks skips blanks and comments. A comment extends to the end of its line: RFC 2578 lets a second --
// end it, but vendors draw lines of dashes.
func (r *mibReader) skipBlanks() {
	for {
		r.text = strings.TrimLeft(r.text, " \t\r\n\f\v")
		if !strings.HasPrefix(r.text, "--") {
			return
		}
		if n := strings.IndexAny(r.text, "\r\n"); n >= 0 {
			r.text = r.text[n:]
		} else {
			r.text = ""
		}
	}
}

// skipTo reads up to a word.
func (r *mibReader) skipTo(word string) {
	for r.word != "" && r.word != word {
		r.next()
	}
}

// imports parses "a, b FROM MODULE … ;".
func (r *mibReader) imports(m *module) {
	var names []string
	for r.next(); r.word != "" && r.word != ";" && r.word != "::="; r.next() {
		switch {
		case r.word == "FROM":
			r.next()
			for _, n := range names {
				m.imports[n] = r.word
			}
			names = nil
		case isName(r.word[0]) && len(names) < maxMIBObjects:
			names = append(names, r.word)
		}
	}
	r.again = r.word == "::="
}

// clause parses the clauses of a macro, up to the place of the name in the tree.
func (r *mibReader) clause(m *module, name, macro string) {
	a := assignment{macro: macro}
	for depth := 0; ; {
		r.next()
		switch {
		case r.word == "":
			return
		case r.quoted:
		case r.word == "{":
			depth++
		case r.word == "}":
			depth--
		case r.word == "::=":
			r.place(m, name, a)
			return
		case r.word == "END" || depth <= 0 && (r.word == "OBJECT-TYPE" || r.word == "IDENTIFIER"):
			// The place of this name is missing; a new name begins.
			r.again = r.word == "OBJECT-TYPE"
			return
		case depth > 0:
		case r.word == "SYNTAX" && a.syntax.name == "":
			a.syntax = r.typeOf()
		case r.word == "INDEX", r.word == "AUGMENTS":
			a.isRow = true
		case r.word == "UNITS":
			if r.next(); r.quoted {
				a.units = strings.Join(strings.Fields(r.word[1:]), " ")
			}
		}
	}
}

// typeOf parses a type: its name, and the names of its values, if any.
func (r *mibReader) typeOf() (s syntax) {
	r.next()
	if r.word == "TEXTUAL-CONVENTION" {
		for r.word != "" && r.word != "SYNTAX" && r.word != "::=" {
			hint := r.word == "DISPLAY-HINT"
			if r.next(); hint && r.quoted && len(r.word) == 4 && strings.HasPrefix(r.word, `"d-`) && r.word[3] >= '0' && r.word[3] <= '9' {
				s.decimals = int(r.word[3] - '0')
			}
		}
		if r.word == "::=" {
			r.again = true
			return s
		}
		r.next()
	}
	if r.quoted || r.word == "" || !isName(r.word[0]) {
		r.again = true
		return s
	}
	s.name = r.word
	if s.name == "SEQUENCE" || s.name == "OBJECT-TYPE" {
		return s
	}
	if s.name == "OCTET" || s.name == "OBJECT" {
		r.next() // STRING, IDENTIFIER
	}
	if r.next(); r.word != "{" {
		r.again = true
		return s
	}
	s.enums = map[string]int64{}
	for r.next(); r.word != "" && r.word != "}"; r.next() {
		name := r.word
		if r.quoted || !isName(name[0]) {
			continue
		}
		if r.next(); r.word != "(" {
			r.again = true
			continue
		}
		r.next()
		if v, err := strconv.ParseInt(r.word, 10, 64); err == nil && len(s.enums) < maxMIBObjects {
			s.enums[name] = v
		}
	}
	return s
}

// place parses "{ parent 1 }" or "{ iso org(3) dod(6) }".
func (r *mibReader) place(m *module, name string, a assignment) {
	if r.next(); r.word != "{" {
		r.again = true // the number of a TRAP-TYPE, or a value not used here
		return
	}
	first := true
	for r.next(); r.word != "" && r.word != "}"; r.next() {
		switch v, err := strconv.ParseUint(r.word, 10, 32); {
		case r.quoted || len(a.arcs) > maxSubids:
			return
		case err == nil:
			a.arcs = append(a.arcs, uint32(v))
		case first && isName(r.word[0]):
			a.parent = r.word
		case r.word == "(" && len(a.arcs) == 0 && r.before == a.parent:
			// iso(1): the name determines the number.
			r.next()
		}
		first = false
	}
	if r.word == "}" && name != "" && (a.parent != "" || len(a.arcs) > 0) {
		if _, there := m.objects[name]; !there {
			m.objects[name] = a
		}
	}
}
