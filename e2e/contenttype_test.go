package e2e

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"slices"
	"testing"
	"time"
)

// TestContentTypeBeforeBody is every receiver with every type, encoding and body. A type or an
// encoding that a receiver does not take is answered 415 before the body has come; a body that is
// corrupt is answered 400 only where both are taken.
func TestContentTypeBeforeBody(t *testing.T) {
	t.Parallel()
	ports := map[string]int{"remote_write": freePort(t), "import": freePort(t), "pushgateway": freePort(t), "otlp": freePort(t)}
	a := startAgent(t, fmt.Sprintf(`
receivers:
  remote_write: {listen: "127.0.0.1:%d"}
  import: {listen: "127.0.0.1:%d"}
  pushgateway: {listen: "127.0.0.1:%d"}
  otlp: {http: {listen: "127.0.0.1:%d"}}
`, ports["remote_write"], ports["import"], ports["pushgateway"], ports["otlp"]))
	text := []string{"", "text/plain", "text/plain; version=0.0.4", "application/openmetrics-text; version=1.0.0", "application/x-www-form-urlencoded", "application/octet-stream"}
	endpoints := map[string]struct {
		path    string
		taken   []string
		refused []string // where it is not nil, all other types are taken
	}{
		"remote_write": {path: "/api/v1/write", taken: []string{"", "application/x-protobuf", "application/x-protobuf;proto=io.prometheus.write.v2.Request"}},
		"import":       {path: "/api/v1/import/prometheus", taken: text},
		"pushgateway":  {path: "/metrics/job/j", refused: []string{"application/vnd.google.protobuf"}},                                                                                                            // every other type is text, as in the Pushgateway
		"otlp":         {path: "/v1/metrics", taken: []string{"application/x-protobuf", "application/x-protobuf;proto=other", "application/x-protobuf;proto=io.prometheus.write.v2.Request", "application/json"}}, // any parameter
	}
	types := []string{"application/x-protobuf;proto=other", "application/vnd.google.protobuf", "application/grpc", "text/html", "multipart/form-data; boundary=x", "not a type",
		"application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"}
	for _, e := range endpoints {
		types = append(types, e.taken...)
	}
	slices.Sort(types)
	types = slices.Compact(types)
	encodings := map[string]bool{"": true, "identity": true, "snappy": true, "gzip": true, "X-GZIP": true, "zstd": true, "br": false, "deflate": false, "gzip, gzip": false}
	for name, e := range endpoints {
		t.Run(name, func(t *testing.T) {
			for _, contentType := range types {
				for encoding, known := range encodings {
					taken := slices.Contains(e.taken, contentType) || e.refused != nil && !slices.Contains(e.refused, contentType)
					wrong := !known || !taken
					for _, whole := range []bool{true, false} {
						if !wrong && !whole {
							continue // it waits for the body
						}
						want := http.StatusBadRequest
						if wrong {
							want = http.StatusUnsupportedMediaType
						}
						if got := postHead(t, ports[name], e.path, contentType, encoding, whole); got != want {
							t.Errorf("type %q, encoding %q, body sent: %t: %d, want %d", contentType, encoding, whole, got, want)
						}
					}
				}
			}
		})
	}
	if s := a.status(); s.WAL.Refused != 0 {
		t.Errorf("the log refused %d samples", s.WAL.Refused)
	}
}

// postHead sends a request by hand, with a body that is corrupt in every format, or without one byte of
// the body that its head announces. It returns the answer's status, which must come at once.
func postHead(t *testing.T, port int, path, contentType, encoding string, whole bool) int {
	t.Helper()
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const body = "\xff\xfe{corrupt} {\n"
	head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n", path, len(body))
	if contentType != "" {
		head += "Content-Type: " + contentType + "\r\n"
	}
	if encoding != "" {
		head += "Content-Encoding: " + encoding + "\r\n"
	}
	head += "Connection: close\r\n\r\n"
	if whole {
		head += body
	}
	if err := conn.SetDeadline(time.Now().Add(4 * time.Second)); err != nil { // less than a body may pause
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte(head)); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Errorf("type %q, encoding %q, body sent: %t: no answer: %v", contentType, encoding, whole, err)
		return 0
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

// The body of a plain curl call without options is accepted as text.
func TestImportTakesWhatCurlSends(t *testing.T) {
	t.Parallel()
	curl := needs(t, "curl")
	port := freePort(t)
	startAgent(t, fmt.Sprintf("receivers: {import: {listen: \"127.0.0.1:%d\"}}\n", port))
	url := fmt.Sprintf("http://127.0.0.1:%d/api/v1/import/prometheus", port)
	file := writeFile(t, t.TempDir()+"/a.txt", "a 1\n")
	for _, args := range [][]string{{"--data-binary", "@" + file}, {"-T", file}, {"-H", "Content-Type:", "--data-binary", "@" + file}} {
		out, err := exec.CommandContext(t.Context(), curl, append([]string{"-sS", "-w", "%{http_code}", url}, args...)...).CombinedOutput()
		if err != nil || string(out) != "204" {
			t.Errorf("curl %v: %s, %v", args, out, err)
		}
	}
}
