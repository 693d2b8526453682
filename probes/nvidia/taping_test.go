//go:build linux

package nvidia

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

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

// TestRecordGivenUp: an nvidia-smi that prints after it was given up adds nothing to the recording, and is in no race with who writes it.
func TestRecordGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProbe(t, Config{})
		text, resume := []byte(read(t, "testdata/tesla-t4.xml")), make(chan struct{})
		p.program = func(context.Context, ...string) ([]byte, error) {
			<-resume
			return text, nil
		}
		taped := tape.New("nvidia")
		if err := p.Record(t.Context(), taped); err == nil || p.flights.Len() != 1 {
			t.Fatalf("nvidia-smi was not given up: %v", err)
		}
		p.program = func(context.Context, ...string) ([]byte, error) { return text, nil }
		close(resume)
		synctest.Wait()
		if n := len(taped.Exchanges); n != 0 {
			t.Errorf("the recording has %d exchanges once the nvidia-smi that was given up has printed", n)
		}
		if taped = tape.New("nvidia"); p.Record(t.Context(), taped) != nil || len(taped.Exchanges) != 1 {
			t.Errorf("a later recording has %d exchanges, want 1", len(taped.Exchanges))
		}
	})
}
