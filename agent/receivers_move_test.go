package agent

import (
	"net"
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
