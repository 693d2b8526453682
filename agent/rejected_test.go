package agent

import (
	"strings"
	"testing"

	"hwsagent/agent/queues"
	"hwsagent/remotewrite"
)

// TestRejectionsSayWhatIsKnown: a text that is known is explained, another one is not.
func TestRejectionsSayWhatIsKnown(t *testing.T) {
	r := queues.Rejections{Target: "a", Kept: 2, Letters: []remotewrite.Letter{
		{Status: 400, Text: "user=1: per-user series limit of 5 exceeded, please contact administrator", Reason: "rejected"},
		{Status: 400, Text: "bad luck", Reason: "rejected"},
	}}
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	if text := b.String(); !strings.Contains(text, "administrator (the receiver's limit of series is reached)\n") || !strings.Contains(text, "bad luck\n") {
		t.Errorf("%s", text)
	}
}
