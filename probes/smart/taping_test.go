//go:build linux

package smart

import (
	"slices"
	"strings"
	"testing"

	"hwsagent/probes/tape"
	"hwsagent/probes/tape/tapetest"
)

// A recording read elsewhere gives the same series; redacted, the same but for the names of the disks.
func TestReplay(t *testing.T) {
	_, c := machine(t, map[string]string{"sda": "ata.json", "nvme0": "nvme.json", "sdb": "sas.json", "sdc": "sleeps.json", "sdd": "refused.json"})
	want := tapetest.Collect(t, newProbe(t, c))
	for _, keep := range [][]string{tape.Kinds(), nil} {
		taped, p := tape.New("smart"), newProbe(t, c)
		if err := p.Record(t.Context(), taped); err == nil {
			t.Error("a disk that refuses is no error")
		}
		read, text := tapetest.File(t, taped, p, keep...)
		again, err := Replay(read)
		if err != nil {
			t.Fatal(err)
		}
		bare := keep == nil
		if got, want := tapetest.Lines(tapetest.Collect(t, again), bare), tapetest.Lines(want, bare); !slices.Equal(got, want) {
			t.Errorf("kept %q: %d series, want %d\n%s", keep, len(got), len(want), strings.Join(got, "\n"))
		}
		for _, id := range []string{"Z1EXAMPLE", "S4EXAMPLE01", "SASEXAMPLE"} {
			if strings.Contains(text, id) != (keep != nil) {
				t.Errorf("kept %q: whether %q is in the recording is %v", keep, id, keep == nil)
			}
		}
	}
}
