package nvidia

import (
	"slices"
	"strings"
	"testing"

	"hwsagent/probes/tape"
	"hwsagent/probes/tape/tapetest"
)

// A recording read elsewhere gives the same series; redacted, the same but for UUIDs and serial numbers, and it has no process.
func TestReplay(t *testing.T) {
	for _, name := range []string{"tesla-t4.xml", "a100-sxm4-v12.xml", "rtx-4000-sff-ada-v13.xml"} {
		dir, c := machine(t, read(t, "testdata/"+name))
		put(t, dir, "links", read(t, "testdata/nvlink.txt"))
		c.NVLink = true
		want := tapetest.Collect(t, newProbe(t, c))
		for _, keep := range [][]string{tape.Kinds(), nil} {
			taped, p := tape.New("nvidia"), newProbe(t, c)
			if err := p.Record(t.Context(), taped); err != nil {
				t.Fatal(err)
			}
			file, text := tapetest.File(t, taped, p, keep...)
			again, err := Replay(file)
			if err != nil {
				t.Fatal(err)
			}
			bare := keep == nil
			if got, want := tapetest.Lines(tapetest.Collect(t, again), bare), tapetest.Lines(want, bare); !slices.Equal(got, want) {
				t.Errorf("%s, kept %q: %d series, want %d\n%s", name, keep, len(got), len(want), strings.Join(got, "\n"))
			}
			log, err := parse([]byte(read(t, "testdata/"+name)))
			if err != nil {
				t.Fatal(err)
			}
			for _, g := range log.all("gpu") {
				if uuid := g.say("uuid"); strings.Contains(text, uuid) != (keep != nil) {
					t.Errorf("%s, kept %q: whether %q is in the recording is %v", name, keep, uuid, keep == nil)
				}
			}
			if strings.Contains(text, "<process_name>") {
				t.Errorf("%s: a process is in the recording", name)
			}
		}
	}
}
