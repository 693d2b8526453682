package reply

import "strings"

// rest is the text that may follow a row's words.
type rest uint8

const (
	nothing  rest = iota // the text ends
	anything             // the rest is not read: it may have labels
	series               // the text ends, or " for series {...}" follows, and then the end or another row of Prometheus
	braces               // "{...}" follows, and then the end or another row of Prometheus
)

// row is one line of the table.
type row struct {
	// words is the beginning of the text. A '#' stands for a number, a time, a duration, an address or a name: 1 to 253
	// letters, digits and a few signs, as many as possible, without trailing ':' and '.'.
	words  string
	rest   rest
	kind   Kind
	reason Reason
	source string // repository and file, or the page
}

func (r row) reply() Reply { return Reply{r.kind, r.reason} }

// read finds the row of a text. known is false if there is none.
func read(text string) (r Reply, known bool) {
	whole := len(text) < cutFrom
	text, list := unwrap(text)
	if list {
		return readList(text, whole)
	}
	for _, t := range [...][]row{prometheus, mimir, cortex, thanos, victoria, rings, others} {
		for i := range t {
			after, ok := match(t[i].words, text)
			switch {
			case !ok:
			case t[i].rest == anything, t[i].rest == nothing && after == "":
				return t[i].reply(), true
			case t[i].rest == series || t[i].rest == braces:
				if r, ok := readJoined(text); ok {
					return r, true
				}
			}
		}
	}
	return readID(text)
}

// readJoined reads a text of Prometheus that lists the problems of a request one after another.
func readJoined(text string) (Reply, bool) {
	all, n := Reply{}, 0
	for ; text != ""; n++ {
		r, after, ok := readOne(text)
		switch {
		case ok && n == 0:
			all = r
		case ok:
			all = careful(all, r)
		case n > 0 && isCut(text):
			return all, true
		default:
			return Reply{}, false
		}
		text = after
	}
	return all, n > 0
}

// readOne reads one problem from the beginning of a text of Prometheus.
func readOne(text string) (r Reply, after string, ok bool) {
	for i := range prometheus {
		after, ok := match(prometheus[i].words, text)
		if !ok {
			continue
		}
		switch prometheus[i].rest {
		case nothing:
			ok = after == ""
		case anything:
			after = ""
		case series:
			const of = " for series "
			if labels, has := strings.CutPrefix(after, of); has {
				after, ok = skipLabels(labels)
			} else if ok = strings.HasPrefix(of, after); ok { // cut off there, or at its end
				after = ""
			}
		case braces:
			after, ok = skipLabels(after)
		}
		if ok {
			return prometheus[i].reply(), strings.TrimLeft(after, " \n"), true
		}
	}
	return Reply{}, text, false
}

// isCut reports whether text may be the beginning of another problem whose end was cut off.
func isCut(text string) bool {
	for i := range prometheus {
		if endsIn(prometheus[i].words, text) {
			return true
		}
	}
	return false
}

// endsIn reports whether a text ends before a row's words do, and matches them up to there.
func endsIn(words, text string) bool {
	for wild := true; wild; {
		var literal string
		literal, words, wild = strings.Cut(words, "#")
		if len(text) < len(literal) {
			return strings.HasPrefix(literal, text)
		}
		after, ok := strings.CutPrefix(text, literal)
		if !ok {
			return false
		}
		text = after[nameLength(after):]
		if text == "" || text == ":" || text == "." {
			return true
		}
	}
	return false
}

// skipLabels skips a series' labels as Prometheus writes them: {a="b", "c d"="e"}, each value a Go string. It also skips
// labels that were cut off at the end of the text.
func skipLabels(text string) (after string, ok bool) {
	if text == "" {
		return "", true
	}
	if text[0] != '{' {
		return text, false
	}
	quoted := false
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && c == '}':
			return text[i+1:], true
		}
	}
	return "", true
}

// readList reads a text of Thanos that joins several texts without labels by "; ". The last one may be cut off unless
// the text is whole.
func readList(text string, whole bool) (Reply, bool) {
	all, n := Reply{}, 0
	for more := true; more; n++ {
		var one string
		one, text, more = strings.Cut(text, "; ")
		one, _ = unwrap(one)
		r, ok := readThanos(one)
		switch {
		case ok && n == 0:
			all = r
		case ok:
			all = careful(all, r)
		case n > 0 && !more && !whole:
		default:
			return Reply{}, false
		}
	}
	return all, true
}

// readThanos reads one text of Thanos.
func readThanos(text string) (Reply, bool) {
	for i := range thanos {
		if after, ok := match(thanos[i].words, text); ok && after == "" {
			return thanos[i].reply(), true
		}
	}
	return Reply{}, false
}

// readID reads the key of Mimir's error catalogue and ignores the words before it, which Mimir may change. These words
// must not contain a label: labels are always quoted or in braces.
func readID(text string) (Reply, bool) {
	const open = "(err-mimir-"
	before, after, ok := strings.Cut(text, open)
	if !ok || strings.ContainsAny(before, "\"'`{}=<>\n") {
		return Reply{}, false
	}
	id, after, ok := strings.Cut(after, ")")
	if !ok || after != "" && after[0] != '.' && after[0] != ' ' {
		return Reply{}, false
	}
	for i := range catalogue {
		if catalogue[i].words == id {
			return catalogue[i].reply(), true
		}
	}
	return Reply{}, false
}

// unwrap removes the prefixes that receivers write before their own words; list is set if several texts follow, joined by "; ".
func unwrap(text string) (words string, list bool) {
	const deep = 12
	for range deep {
		before := len(text)
		for i := range wrappers {
			if after, ok := match(wrappers[i].words, text); ok {
				text, list = after, list || wrappers[i].list
				break
			}
		}
		if len(text) == before {
			break
		}
	}
	return text, list
}

// match compares the beginning of a text with a row's words and returns the text after them. It reads each byte once.
func match(words, text string) (after string, ok bool) {
	for {
		literal, more, wild := strings.Cut(words, "#")
		if text, ok = strings.CutPrefix(text, literal); !ok {
			return "", false
		}
		if !wild {
			return text, true
		}
		n := nameLength(text)
		if n == 0 {
			return "", false
		}
		text, words = text[n:], more
	}
}

// nameLength returns the length of the prefix that a '#' stands for.
func nameLength(text string) int {
	const longest = 253 // the longest host name
	n := 0
	for n < len(text) && n < longest && inName(text[n]) {
		n++
	}
	for n > 0 && (text[n-1] == ':' || text[n-1] == '.') {
		n--
	}
	return n
}

func inName(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || strings.IndexByte(".:+-_/[]|!*@", c) >= 0
}
