package nut

import (
	"os"
	"slices"
	"strings"
	"testing"

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
	c := Config{Target: u.address, Username: "monitor", Password: "s3cr3tword"}
	want := tapetest.Collect(t, newProbe(t, c))
	for _, keep := range [][]string{tape.Kinds(), nil} {
		taped, p := tape.New("nut"), newProbe(t, c)
		if err := p.Record(t.Context(), taped); err == nil {
			t.Error("a device that is stale is no error")
		}
		file, text := tapetest.File(t, taped, p, keep...)
		again, err := Replay(file)
		if err != nil {
			t.Fatal(err)
		}
		bare := keep == nil
		without := []string{"hwsagent_", "network_ups_tools_driver", "nut_driver"}
		if got, want := tapetest.Lines(tapetest.Collect(t, again), bare, without...), tapetest.Lines(want, bare, without...); !slices.Equal(got, want) {
			t.Errorf("kept %q: %d series, want %d\n%s\n%s", keep, len(got), len(want), strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		for _, id := range []string{"AS1234567890", "Jane Roe"} {
			if strings.Contains(text, id) != (keep != nil) {
				t.Errorf("kept %q: whether %q is in the recording is %v", keep, id, keep == nil)
			}
		}
		for _, secret := range []string{"hunter22", "s3cr3tword", "monitor"} {
			if strings.Contains(text, secret) {
				t.Errorf("%q is in the recording", secret)
			}
		}
	}
}
