package nut

import (
	"os"
	"testing"

	"hwsagent/probes"
	"hwsagent/probes/tape"
	"hwsagent/probes/tape/tapetest"
)

// A recording read elsewhere gives the same series; redacted, the same but for serial numbers and places, and never with a
// setting of a driver.
func TestReplay(t *testing.T) {
	text, err := os.ReadFile("testdata/demo.dev")
	if err != nil {
		t.Fatal(err)
	}
	demo := string(text) + "ups.serial: AS1234567890\nups.contact: Jane Roe\ndriver.parameter.authPassword: hunter22\n"
	u := &upsd{answer: of(map[string]string{"demo": demo, "stale": "ERR DATA-STALE"})}
	u.serve(t)
	tapetest.Case{
		Type: "nut",
		New: func() tapetest.Recorder {
			return newProbe(t, Config{Target: u.address, Username: "monitor", Password: "s3cr3tword"})
		},
		Replay:  func(from *tape.Tape) (probes.Probe, error) { return Replay(from) },
		Partial: true, // a device is stale
		Without: []string{"hwsagent_", "network_ups_tools_driver", "nut_driver"},
		IDs:     []string{"AS1234567890", "Jane Roe"},
		Secrets: []string{"hunter22", "s3cr3tword", "monitor"},
	}.Check(t)
}
