package status

import (
	"testing"
	"time"
)

// The remedy of several targets with the same cause is that of each, without what differs: a name or a host that is also a word of the
// remedy changes nothing else.
func TestNamesThatAreWords(t *testing.T) {
	s := Status{Running: true, Now: time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)}
	for _, name := range []string{"a", "the"} {
		s.Targets = append(s.Targets, TargetStatus{
			Name: name, URL: "http://receiver/write", State: StateRetrying, Ledger: LedgerStatus{Balanced: true},
			Why: "connection refused", Try: "start the receiver; a firewall may refuse it",
		})
	}
	found := Judge(s).Findings
	if len(found) != 1 || len(found[0].Tries) != 1 || found[0].Tries[0].Text != s.Targets[0].Try {
		t.Errorf("%+v", found)
	}
	for i := range s.Targets {
		s.Targets[i].Try = ""
	}
	if found = Judge(s).Findings; len(found) != 1 || len(found[0].Tries) != 1 || found[0].Tries[0].Pieces()[1].Text != "hwsagent targets test NAME" {
		t.Errorf("without a remedy of its own: %+v", found)
	}
}
