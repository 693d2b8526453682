package reply

import (
	"strings"
	"testing"
	"time"

	"hwsagent/internal/tools/tier"
)

func TestStatusAlone(t *testing.T) {
	for _, tc := range []struct {
		want     Kind
		statuses []int
	}{
		{Took, []int{200, 202, 204, 299}},
		{Opaque, []int{100, 101, 301, 307, 400, 404, 405, 409, 415, 418, 422, 451, 600, -1}},
		{Unauthorized, []int{401, 403}},
		{TooLarge, []int{413}},
		{Throttled, []int{429}},
		{Failed, []int{0, 408, 425, 500, 502, 503, 504, 529, 599}},
	} {
		for _, status := range tc.statuses {
			for _, text := range []string{"", "no", "<html><body>out of order sample</body></html>"} {
				want := tc.want
				if want == Took && strings.HasPrefix(text, "<") {
					want = Opaque // a portal's page
				}
				if got := Of(status, text); got != (Reply{Kind: want}) {
					t.Errorf("%d %q is %v %v, want %v unknown", status, text, got.Kind, got.Reason, want)
				}
			}
		}
	}
}

// TestStatusOfWords: the words of a receiver's database count with a refusal's status, and with Prometheus' 500.
func TestStatusOfWords(t *testing.T) {
	for _, tc := range []struct {
		status int
		text   string
		want   Reply
	}{
		{422, "out of order sample", Reply{Late, OutOfOrder}},
		{500, "too old sample", Reply{TooOld, OutsideWindow}},
		{500, "out of bounds: timestamp is too far in the future", Reply{Bad, TooFarInFuture}},
		{500, "out of order sample", Reply{Failed, OutOfOrder}},
		{502, "too old sample", Reply{Failed, OutsideWindow}},
		{403, "out of order sample", Reply{Kind: Unauthorized}},
		{404, "out of order sample", Reply{Opaque, OutOfOrder}},
		{200, "out of order sample", Reply{Kind: Took}},
	} {
		if got := Of(tc.status, tc.text); got != tc.want {
			t.Errorf("%d %q is %v %v, want %v %v", tc.status, tc.text, got.Kind, got.Reason, tc.want.Kind, tc.want.Reason)
		}
	}
}

// TestSeveral: of several texts in one answer the most careful one counts.
func TestSeveral(t *testing.T) {
	const a, b = ` for series {__name__="a", zone="w\"} too old sample"}`, ` for series {__name__="b"}`
	long := strings.Repeat("out of order sample"+a+"\n", 30)
	for _, tc := range []struct {
		name, text string
		want       Reply
	}{
		{"late twice", "out of order sample" + a + "\nout of order sample" + b, Reply{Late, OutOfOrder}},
		{"on one line", "out of order sample" + a + " too old sample" + b, Reply{TooOld, OutsideWindow}},
		{"too old, late", "too old sample" + a + "\nduplicate sample for timestamp" + b, Reply{TooOld, OutsideWindow}},
		{"late, bad", "out of order sample" + a + "\ninvalid metric name or labels, got {a=\"\\xff\"}\nout of order sample" + b, Reply{Bad, InvalidLabel}},
		{"bad, late", "out of bounds: timestamp is too far in the future" + a + "\nout of order sample" + b, Reply{Bad, TooFarInFuture}},
		{"late, unknown", "out of order sample" + a + "\nthe moon is full", Reply{}},
		{"late, and more after the labels", "out of order sample" + a + " or so", Reply{}},
		{"late, and more", "out of order samples", Reply{}},
		{"labels without an end", `out of order sample for series {__name__="a", zone="w`, Reply{Late, OutOfOrder}},
		{"cut in the labels", long[:1024], Reply{Late, OutOfOrder}},
		{"cut in the words", long[:len(long)-len("er sample"+a+"\n")], Reply{Late, OutOfOrder}},
		{"cut in a time", long[:25] + "eries {a=\"b\"}\nduplicate sample for timestamp 1700", Reply{Late, OutOfOrder}},
		{"cut in \"for series\"", "out of order sample" + b + " out of order sample for se", Reply{Late, OutOfOrder}},
		{"longer than is read", strings.Repeat(long, 9) + "x", Reply{Late, OutOfOrder}},

		{"Thanos, late twice", "2 errors: store locally for endpoint a:1: add 1 samples: out of order sample; store locally for endpoint b:1: add 2 samples: out of order sample", Reply{Late, OutOfOrder}},
		{"Thanos, late and too old", "2 errors: add 1 samples: out of order sample; add 2 samples: out of bounds", Reply{TooOld, OutOfBounds}},
		{"Thanos, late and labels", "2 errors: add 1 samples: out of order sample; add 2 series: out of order labels", Reply{Bad, LabelsNotSorted}},
		{"Thanos, late and a conflict", "2 errors: forwarding request to endpoint a:1: rpc error: code = AlreadyExists desc = store locally for endpoint a:1: conflict; store locally for endpoint b:1: add 2 samples: out of order sample", Reply{Opaque, Conflict}},
		{"Thanos, nested", "2 errors: forwarding request to endpoint a:1: rpc error: code = AlreadyExists desc = 2 errors: add 1 samples: out of order sample; add 1 samples: out of bounds; add 2 samples: out of order sample", Reply{TooOld, OutOfBounds}},
		{"Thanos, late and unknown", "2 errors: add 1 samples: out of order sample; commit samples: no space left on device", Reply{}},
		{"Thanos, cut", strings.Repeat("9 errors: add 1 samples: out of order sample; ", 25) + "forwarding requ", Reply{Late, OutOfOrder}},
	} {
		if got := Of(400, tc.text); got != tc.want {
			t.Errorf("%s: %v %v, want %v %v", tc.name, got.Kind, got.Reason, tc.want.Kind, tc.want.Reason)
		}
	}
}

// TestReasons: each reason has a stable name and words of its own; a number out of range is unknown.
func TestReasons(t *testing.T) {
	names, texts := map[string]bool{}, map[string]bool{}
	for r := range reasons {
		if name, text := r.String(), r.Text(); name == "" || text == "" || names[name] || texts[text] || strings.ToLower(name) != name || strings.Contains(name, " ") {
			t.Errorf("reason %d: name %q, text %q", r, name, text)
		}
		names[r.String()], texts[r.Text()] = true, true
	}
	if got := Reason(255).String(); got != "unknown" {
		t.Errorf("reason 255 is %q", got)
	}
}

// FuzzOf: any status and text is read in bounded time, without a panic, and a web page is never believed.
func FuzzOf(f *testing.F) {
	for _, r := range realTexts() {
		f.Add(r.status, filled(r.text, "west"))
	}
	f.Add(400, "9 errors: "+strings.Repeat("9 errors: ", 500))
	f.Add(400, strings.Repeat("user=a: ", 500)+"out of order sample")
	f.Add(400, strings.Repeat("out of order sample for series {} ", 500))
	f.Add(400, "out of order sample for series "+strings.Repeat(`{"\`, 500))
	f.Fuzz(func(t *testing.T, status int, text string) {
		start := time.Now()
		r := Of(status, text)
		if took := time.Since(start); took > tier.Within(time.Second) { // it takes microseconds
			t.Errorf("took %v for %d bytes", took, len(text))
		}
		if r.Kind > Failed || r.Reason >= reasons || r.Kind.String() == "" {
			t.Errorf("%d %q is %d %d", status, text, r.Kind, r.Reason)
		}
		if refuses(status) {
			if page := Of(status, "<html>"+text); page != (Reply{}) {
				t.Errorf("a page with %q is %v %v", text, page.Kind, page.Reason)
			}
		}
	})
}

func BenchmarkOf(b *testing.B) {
	unknown := strings.Repeat("the moon is full; ", 60)
	for b.Loop() {
		Of(400, unknown)
	}
}

// Callers of OfSeries hold back whole series, so it must exclude reasons that lie in a sample, a request or the receiver.
func TestReasonsOfSeries(t *testing.T) {
	var not []string
	for r := range reasons {
		if !r.OfSeries() {
			not = append(not, r.String())
		}
	}
	want := "unknown out-of-order duplicate-timestamp outside-window out-of-bounds too-far-in-future too-frequent conflict metadata-limit " +
		"invalid-histogram histogram-too-large no-sample sample-too-large invalid-exemplar late-exemplar invalid-metadata rate-limit too-many-replicas " +
		"overloaded partly-down request-too-large malformed unsupported-message blocked receiver-disabled"
	if got := strings.Join(not, " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
