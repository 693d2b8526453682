package agent

import (
	"net"
	"os"
	"path/filepath"
	"testing"
)

// A reload that fails leaves no trace: not the inputs of receivers that did not come.
func TestReceiverThatDoesNotCome(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	sink := newSink(t)
	r := &running{t: t, file: filepath.Join(t.TempDir(), "agent.yaml"), done: make(chan error, 1)}
	r.configure(entry("a", sink.URL, ""))
	startAgentWith(t, r, t.TempDir(), "")
	before := len(r.Status().Inputs)
	r.extra = "receivers: {import: {listen: " + taken.Addr().String() + "}, pushgateway: {listen: \"127.0.0.1:0\"}}\n"
	r.configure(entry("a", sink.URL, ""))
	if err := r.Reload(); err == nil {
		t.Fatal("the fault did not fire")
	}
	for _, in := range r.Status().Inputs {
		if in.Kind == receiverKind {
			t.Errorf("%+v", in)
		}
	}
	if n := len(r.Status().Inputs); n != before {
		t.Errorf("%d inputs, want %d", n, before)
	}
}

// The status of TLS and authentication follows the contents of the file, not its mere existence.
func TestProtectionIsTold(t *testing.T) {
	sink := newSink(t)
	dir := t.TempDir()
	r := &running{t: t, file: filepath.Join(dir, "agent.yaml"), done: make(chan error, 1)}
	guard := filepath.Join(dir, "web.yml")
	put := func(text string) {
		t.Helper()
		if err := os.WriteFile(guard, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("http_server_config: {http2: true}\n")
	r.extra = "pull: {listen: \"0.0.0.0:0\", web_config_file: " + guard + "}\nreceivers: {import: {listen: \"127.0.0.1:0\", web_config_file: " + guard + "}}\n"
	r.configure(entry("a", sink.URL, ""))
	startAgentWith(t, r, t.TempDir(), "")
	if s := r.Status(); s.Pull == nil || s.Pull.TLS || !s.Pull.Open || s.Receivers[0].TLS {
		t.Errorf("a file without TLS or users: %+v, %+v", s.Pull, s.Receivers)
	}
	put("basic_auth_users: {alice: $2a$04$ztozqrw3GrFFr1lXnNgmZuQlFOauouDGBQvpVm4v/OeMHwBLOCDO2}\n")
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	if s := r.Status(); s.Pull == nil || s.Pull.TLS || s.Pull.Open || s.Receivers[0].TLS {
		t.Errorf("users: %+v, %+v", s.Pull, s.Receivers)
	}
}
