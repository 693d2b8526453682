package reply

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"hwsagent/internal/tools/tier"
)

// real is one text of a receiver.
type real struct {
	reason Reason
	text   string
}

// filled is a real text with a label's value in it.
func filled(text, value string) string {
	quoted := strconv.Quote(value)
	return strings.NewReplacer("§q", quoted[1:len(quoted)-1], "§r", value).Replace(text)
}

// TestRealTexts: full texts of receivers are read as the table says, and each row and key has one.
func TestRealTexts(t *testing.T) {
	rows, keys := map[string]bool{}, map[string]bool{}
	for _, x := range realTexts() {
		words := filled(x.text, "west")
		if got := Of(words + "\n"); got != x.reason {
			t.Errorf("%q is %s, want %s", words, got, x.reason)
		}
		bare, _ := unwrap(words)
		for _, r := range table {
			if _, ok := match(r.words, bare); ok {
				rows[r.words] = true
				break
			}
		}
		for key := range catalogue {
			if strings.Contains(words, "(err-mimir-"+key+")") {
				keys[key] = true
			}
		}
	}
	for _, r := range table {
		if !rows[r.words] || r.source == "" {
			t.Errorf("row %q is incomplete, or no text is read by it", r.words)
		}
	}
	for key := range catalogue {
		if !keys[key] {
			t.Errorf("no text has the key %q", key)
		}
	}
}

// hostileValues are label values that try to pass for other texts: each text, and its end.
func hostileValues() (all []string) {
	for _, x := range realTexts() {
		text := filled(x.text, "x")
		all = append(all, text, `"} `+text, `"}`+"\n"+text, "'} "+text, "\n"+text, "; "+text, ": "+text, `\"} `+text)
	}
	for key := range catalogue {
		all = append(all, "' (err-mimir-"+key+")")
	}
	return all
}

// TestHostileLabels: a label's value, whatever is in it, does not change what a text is read as.
func TestHostileLabels(t *testing.T) {
	if testing.Short() {
		t.Skip("left out with -short: one goroutine, of which the race detector has nothing to say")
	}
	values := hostileValues()
	for _, x := range realTexts() {
		if !strings.Contains(x.text, "§") {
			continue
		}
		for _, v := range values {
			words := filled(x.text, v)
			for _, words := range []string{words, strings.Join(strings.Fields(words), " ")} { // as the caller shows it
				if got := Of(words); got != x.reason {
					t.Fatalf("%q is %s, want %s", words, got, x.reason)
				}
			}
		}
	}
}

// TestHostileUnknown: a text that no row begins has no reason, whatever it quotes.
func TestHostileUnknown(t *testing.T) {
	for _, v := range hostileValues() {
		for _, text := range []string{
			"bad sample " + strconv.Quote(v),
			"the policy blocks " + v,
			"series up{zone=" + strconv.Quote(v) + "} is refused",
			"<html><head><title>" + v + "</title></head></html>",
			"<!DOCTYPE html>\n<p>" + v,
			"sample: '" + v + "'",
			`{"message":` + strconv.Quote(v) + `}`,
		} {
			if strings.Contains(v, "(err-mimir-") && strings.HasPrefix(text, "the policy") {
				continue // Mimir's key may stand after any words that have no label
			}
			if got := Of(text); got != Unknown {
				t.Fatalf("%q is %s, want unknown", text, got)
			}
		}
	}
}

// TestSeveral: of several problems in one text the first counts; the texts of several endpoints must agree.
func TestSeveral(t *testing.T) {
	const a, b = ` for series {__name__="a", zone="w\"} too old sample"}`, ` for series {__name__="b"}`
	for text, want := range map[string]Reason{
		"out of order sample" + a + "\nout of order sample" + b:                          OutOfOrder,
		"out of order sample" + a + "\ninvalid metric name or labels, got {a=\"\\xff\"}": OutOfOrder,
		`out of order sample for series {__name__="a", zone="w`:                          OutOfOrder,
		"Out of order: the service is being repaired":                                    Unknown,
		"": Unknown,
		"2 errors: store locally for endpoint a:1: add 1 samples: out of order sample; store locally for endpoint b:1: add 2 samples: out of order sample": OutOfOrder,
		"2 errors: add 1 samples: out of order sample; add 2 samples: out of bounds":                                                                       Unknown,
		"2 errors: add 1 samples: out of order sample; commit samples: no space left on device":                                                            Unknown,
		"2 errors: forwarding request to endpoint a:1: rpc error: code = AlreadyExists desc = conflict":                                                    Unknown,
	} {
		if got := Of(text); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}

// TestReasons: each reason has a stable name and words of its own; a number out of range is unknown. Callers of OfSeries
// hold back whole series, so it must exclude reasons that lie in a sample, a request or the receiver.
func TestReasons(t *testing.T) {
	names, texts := map[string]bool{}, map[string]bool{}
	var of []string
	for r := range reasons {
		if name, text := r.String(), r.Text(); name == "" || text == "" || names[name] || texts[text] || strings.ToLower(name) != name || strings.Contains(name, " ") {
			t.Errorf("reason %d: name %q, text %q", r, name, text)
		}
		names[r.String()], texts[r.Text()] = true, true
		if r.OfSeries() {
			of = append(of, r.String())
		}
	}
	if got := strings.Join(of, " "); got != "series-limit invalid-labels label-limit type-conflict histograms-disabled" {
		t.Errorf("reasons of series: %s", got)
	}
	if got := Reason(255).String(); got != "unknown" {
		t.Errorf("reason 255 is %q", got)
	}
}

// FuzzOf: any text is read in bounded time, without a panic, and a web page is never believed.
func FuzzOf(f *testing.F) {
	for _, x := range realTexts() {
		f.Add(filled(x.text, "west"))
	}
	f.Add("9 errors: " + strings.Repeat("9 errors: ", 500))
	f.Add(strings.Repeat("user=a: ", 500) + "out of order sample")
	f.Add(strings.Repeat("out of order sample for series {} ", 500))
	f.Fuzz(func(t *testing.T, text string) {
		start := time.Now()
		r := Of(text)
		if took := time.Since(start); took > tier.Within(time.Second) { // it takes microseconds
			t.Errorf("took %v for %d bytes", took, len(text))
		}
		if r >= reasons || r.Kind().String() == "" {
			t.Errorf("%q is %d", text, r)
		}
		if page := Of("<html>" + text); page != Unknown {
			t.Errorf("a page with %q is %v", text, page)
		}
	})
}

func BenchmarkOf(b *testing.B) {
	unknown := strings.Repeat("the moon is full; ", 60)
	for b.Loop() {
		Of(unknown)
	}
}
