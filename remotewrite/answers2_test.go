package remotewrite

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hwsagent/wal/queue"
)

// What remote write 2.0 demands about answers, over HTTP.

// "Senders SHOULD assume 415 HTTP Unsupported Media Type status code when sending the data
// using io.prometheus.write.v2.Request and receiving 2xx HTTP status code, but without any
// of the X-Prometheus-Remote-Write-*-Written response headers" (Required Written Response
// Headers): the same samples go out as 1.0, and each is counted once.
func Test2xxWithoutWrittenIs415(t *testing.T) {
	for _, status := range []int{200, 202, 204, 415} {
		all, o := overHTTP(t, "protobuf_message: io.prometheus.write.v2.Request", everyKind, func(_ int, r *wired, h http.Header) int {
			if r.v2 != nil {
				return status
			}
			return 204
		})
		got := map[string]int{}
		for _, r := range all {
			for _, s := range r.series {
				if r.v1 != nil {
					got[s.name()] += len(s.samples) + len(s.histograms)
				}
			}
		}
		want := map[string]int{"a_total": 12, "b": 24, "hw_temperature": 12, "values": 12, "h": 12, "fh": 12}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%d: samples as 1.0 (-want +got):\n%s", status, d)
		}
		if o.Delivered != 84 || o.Dropped[queue.Unsupported] != 12 || o.Sum() != 96 { // the custom buckets
			t.Errorf("%d: outcome %+v", status, o)
		}
	}
}

// "Upon receiving a 2xx or a 4xx status code, Senders MAY assume that any missing
// X-Prometheus-Remote-Write-*-Written response header means no element from this category
// was written": one header is enough for a receiver of 2.0.
func TestOneWrittenHeaderIsEnough(t *testing.T) {
	for _, name := range []string{"Samples", "Histograms"} {
		all, o := overHTTP(t, "protobuf_message: io.prometheus.write.v2.Request", everyKind, func(_ int, r *wired, h http.Header) int {
			n := 0
			for _, x := range r.series {
				n += len(x.samples) + len(x.histograms)
			}
			h.Set("X-Prometheus-Remote-Write-"+name+"-Written", strconv.Itoa(n))
			return 204
		})
		if o.Delivered != 96 {
			t.Errorf("%s: %+v", name, o)
		}
		for _, r := range all {
			if r.v1 != nil {
				t.Errorf("%s: a request of 1.0", name)
			}
		}
	}
}

// "Senders MUST NOT assume the same when using the deprecated prometheus.WriteRequest
// Protobuf Message": headers on answers to 1.0 mean nothing, nor does their absence.
func TestWrittenMeansNothingIn1(t *testing.T) {
	for _, written := range []string{"", "0", "1"} {
		_, o := overHTTP(t, "protobuf_message: prometheus.WriteRequest", everyKind, func(_ int, r *wired, h http.Header) int {
			if written != "" {
				h.Set("X-Prometheus-Remote-Write-Samples-Written", written)
			}
			return 204
		})
		if o.Delivered != 84 {
			t.Errorf("%q: %+v", written, o)
		}
	}
}

// "Senders MUST NOT assume what Remote Write specification version the Receiver implements
// from the remote write response headers": what a receiver says to 1.0 does not make it one of 2.0.
func TestHeadersDoNotTellTheVersion(t *testing.T) {
	all, _ := overHTTP(t, "protobuf_message: prometheus.WriteRequest", everyKind, func(_ int, r *wired, h http.Header) int {
		h.Set("X-Prometheus-Remote-Write-Version", "2.0.0")
		r.confirm(h)
		return 204
	})
	for _, r := range all {
		if r.v2 != nil {
			t.Fatal("a request of 2.0")
		}
	}
}

// "Senders MUST NOT allow users to override" what the protocol sets (Protocol, Required
// headers), in whatever case it is written.
func TestReservedHeadersCannotBeSet(t *testing.T) {
	for _, key := range []string{"headers: {%s: x}", "http_headers: {%s: {values: [x]}}"} {
		for _, name := range []string{"Content-Encoding", "Content-Type", "X-Prometheus-Remote-Write-Version", "User-Agent"} {
			for _, name := range []string{name, strings.ToLower(name)} {
				c, err := load("url: http://h/\n" + fmt.Sprintf(key, name))
				if err != nil {
					t.Fatal(err)
				}
				if p := c.Validate(); len(p) == 0 || !strings.Contains(p[len(p)-1].Text, "reserved") {
					t.Errorf("%s: %v", name, p)
				}
			}
		}
	}
}
