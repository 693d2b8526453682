//go:build linux

package smart

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/common/model"

	"hwsagent/probes"
	"hwsagent/probes/tape"
	"hwsagent/probes/tape/tapetest"
)

// A recording read elsewhere gives the same series; redacted, the same but for the names of the disks.
func TestReplay(t *testing.T) {
	_, scanned := machine(t, map[string]string{"sda": "ata.json", "nvme0": "nvme.json", "sdb": "sas.json", "sdc": "sleeps.json", "sdd": "refused.json"})
	configured := scanned
	configured.Devices = []Device{{Device: "/dev/sda", Type: "sat"}, {Device: "/dev/sdb"}}
	for name, c := range map[string]tapetest.Case{
		"scan":    {New: func() tapetest.Recorder { return newProbe(t, scanned) }, Partial: true, IDs: []string{"Z1EXAMPLE", "S4EXAMPLE01", "SASEXAMPLE"}},
		"devices": {New: func() tapetest.Recorder { return newProbe(t, configured) }, IDs: []string{"Z1EXAMPLE", "SASEXAMPLE"}},
		"NVMe commands": {New: func() tapetest.Recorder {
			return nvmeMachine(t, Config{Devices: []Device{{Device: "/dev/nvme0"}}}, fakeNVMe(t))
		},
			IDs: []string{hex.EncodeToString([]byte("S4EXAMPLE01"))}},
		"NVMe commands, one refused": {New: func() tapetest.Recorder {
			ask := fakeNVMe(t)
			return nvmeMachine(t, Config{Devices: []Device{{Device: "/dev/nvme0"}, {Device: "/dev/nvme1"}}}, func(name string, commands ...*adminCommand) error {
				if name == "nvme1" {
					return nvmeStatus(0x4281)
				}
				return ask(name, commands...)
			})
		}, Partial: true},
	} {
		t.Run(name, func(t *testing.T) {
			c.Type, c.Replay = "smart", func(from *tape.Tape) (probes.Probe, error) { return Replay(from) }
			c.Check(t)
		})
	}
}

// TestRecordGivenUp: a disk that answers after it was given up adds nothing to the recording, and is in no race with who writes it.
func TestRecordGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		capture, err := os.ReadFile("testdata/ata.json")
		if err != nil {
			t.Fatal(err)
		}
		p := newProbe(t, Config{ReadTimeout: model.Duration(time.Second), Devices: []Device{{Device: "/dev/sda"}, {Device: "/dev/sdb"}}})
		resume := make(chan struct{})
		p.smartctl = func(_ context.Context, args ...string) ([]byte, error) {
			if args[len(args)-1] == "/dev/sdb" {
				<-resume
			}
			return capture, nil
		}
		taped := tape.New("smart")
		if err := p.Record(t.Context(), taped); !errors.Is(err, probes.ErrPartial) || p.flights.Len() != 1 {
			t.Fatalf("no disk was given up: %v", err)
		}
		before := len(taped.Exchanges)
		p.smartctl = func(context.Context, ...string) ([]byte, error) { return capture, nil }
		close(resume)
		synctest.Wait()
		if n := len(taped.Exchanges); before != 1 || n != before {
			t.Errorf("the recording has %d exchanges, and %d once the disk that was given up has answered", before, n)
		}
		if taped = tape.New("smart"); p.Record(t.Context(), taped) != nil || len(taped.Exchanges) != 2 {
			t.Errorf("a later recording has %d exchanges, want that of each disk", len(taped.Exchanges))
		}
	})
}

// TestRedactController: nothing of a controller's identity is left that names the one disk; its model and limits stay.
func TestRedactController(t *testing.T) {
	who := bytes.Repeat([]byte{0xa5}, identifySize)
	copy(who[4:], "S4EXAMPLE01         EXAMPLE NVMe 1TB                        2B4QEXM7")
	copy(who[768:], "nqn.2014.08.org.nvmexpress:144d144dS4EXAMPLE01         EXAMPLE\x00")
	copy(who[3072:], "S4EXAMPLE01")
	r, err := tape.NewRedactor(nil)
	if err != nil {
		t.Fatal(err)
	}
	before := bytes.Clone(who)
	redactController(who, r)
	if bytes.Contains(who, []byte("S4EXAMPLE01")) || bytes.Contains(who[112:128], []byte{0xa5}) {
		t.Errorf("an identifier is left: %q", who[:128])
	}
	if !bytes.Equal(who[24:112], before[24:112]) || !bytes.Equal(who[256:768], before[256:768]) || !strings.HasPrefix(string(who[15:]), "         EXAMPLE NVMe") {
		t.Errorf("what does not name the disk has changed: %q", who[:128])
	}
}
