package ipmi

import (
	"errors"
	"strings"
	"testing"

	"hwsagent/probes"
)

// once refuses one command with a completion code the first time, and does as before then.
func once(f *fake, key [2]byte, refused completion) (fired *int) {
	own, n := f.answers[key], 0
	f.answers[key] = func(d []byte) ([]byte, error) {
		if n++; n == 1 {
			return nil, refused
		}
		return own(d)
	}
	return &n
}

// TestRefusalOfTheMoment: a request that the BMC refuses because it is busy or starting is repeated in the next round; the refusal does
// not mean that the BMC lacks the item, and earlier values stay.
func TestRefusalOfTheMoment(t *testing.T) {
	for _, tc := range []struct {
		name string
		key  [2]byte
		want string
	}{
		{"power", [2]byte{netGroup, getPower}, `ipmi_dcmi_power_consumption_watts{} 300`},
		{"the machine's inventory", [2]byte{netStorage, getAreaInfo}, `hw_id="enclosure",hw_model="Name",hw_name="Name",hw_serial_number="SRV-1"`},
		{"the machine's UUID", [2]byte{netApp, getSystemGUID}, `hw_uuid="00112233-4455-6677-8899-aabbccddeeff"`},
		{"records", [2]byte{netStorage, getRecord}, `name="second"} 42`},
		{"reservation of records", [2]byte{netStorage, reserveRecords}, `name="second"} 42`},
	} {
		for _, refused := range []completion{busy, tookTooLong, recordsChange, firmwareUpdate, starting} {
			f := newFake(fullRecord(1, 1, "first"), fullRecord(2, 2, "second"))
			withInventories(f, map[byte][]byte{0: inventoryOf("Maker", "Name", "SRV-1")})
			f.answers[[2]byte{netGroup, getPower}] = always(0xdc, 44, 1, 44, 1, 44, 1, 44, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0x40)
			f.answers[[2]byte{netApp, getSystemGUID}] = always(0x33, 0x22, 0x11, 0x00, 0x55, 0x44, 0x77, 0x66, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff)
			fired, p := once(f, tc.key, refused), probeOf(t, f)
			first, err := round(t, p)
			if early := strings.Contains(first, tc.want); !early && !errors.Is(err, probes.ErrPartial) || *fired == 0 {
				t.Errorf("%s, %v: the first round: %v, fired %d\n%s", tc.name, refused, err, *fired, first)
			}
			if got, err := round(t, p); err != nil || !strings.Contains(got, tc.want) {
				t.Errorf("%s, %v: the second round lacks %s: %v\n%s", tc.name, refused, tc.want, err, got)
			}
		}
	}
}

// TestEventLogThatIsBusy: entries that the BMC does not give at the moment are counted once it does, each once.
func TestEventLogThatIsBusy(t *testing.T) {
	f, entries := newFake(fullRecord(1, 1, "first")), uint16(1)
	f.answers[[2]byte{netStorage, getLogInfo}] = func([]byte) ([]byte, error) {
		return []byte{0x51, byte(entries), 0, 0, 1, byte(entries), 0, 0, 0, 0, 0, 0, 0, 0}, nil
	}
	var refuse []completion // the answers to come
	f.answers[[2]byte{netStorage, getLogEntry}] = func(d []byte) ([]byte, error) {
		if len(refuse) > 0 {
			code := refuse[0]
			if refuse = refuse[1:]; code != 0 {
				return nil, code
			}
		}
		id := uint16(d[2]) | uint16(d[3])<<8
		switch id {
		case 0:
			id = 1
		case 0xffff:
			id = entries
		}
		next := []byte{byte(id + 1), 0}
		if id == entries {
			next = []byte{0xff, 0xff}
		}
		return append(next, byte(id), 0, 2, 0, 0, 0, 0x60, 0x20, 0, 4, typeMemory, 1, 0x6f, 0, 0, 0), nil
	}
	p := probeOf(t, f)
	if got, err := round(t, p); err != nil || strings.Contains(got, "ipmi_sel_new_entries_total") {
		t.Fatalf("%v\n%s", err, got)
	}
	entries = 4
	for _, now := range [][]completion{{busy}, {0, starting}, {0, 0, tookTooLong}} {
		refuse = now
		if got, err := round(t, p); !errors.Is(err, probes.ErrPartial) || len(refuse) != 0 {
			t.Errorf("the log was not busy: %v\n%s", err, got)
		}
	}
	for range 2 {
		if got, err := round(t, p); err != nil || !strings.Contains(got, `ipmi_sel_new_entries_total{type="Memory"} 3`) {
			t.Errorf("three entries are new: %v\n%s", err, got)
		}
	}
}

// TestSilentCommand: a command that a BMC never answers costs the parts behind it one round, not each round. Two such commands cost two.
func TestSilentCommand(t *testing.T) {
	keys := map[string][2]byte{
		"device ID": {netApp, getDeviceID}, "the machine's inventory": {netStorage, getAreaInfo}, "the machine's UUID": {netApp, getSystemGUID},
		"chassis": {netChassis, getChassis}, "event log": {netStorage, getLogInfo}, "power": {netGroup, getPower},
	}
	for one := range keys {
		for other := range keys {
			f := newFake(fullRecord(1, 1, "first"))
			asked := 0
			for _, name := range []string{one, other} {
				f.answers[keys[name]] = func([]byte) ([]byte, error) { asked++; return nil, errSilent }
			}
			p := probeOf(t, f)
			for n := range 6 {
				got, err := round(t, p)
				if there := strings.Contains(got, `name="first"`); n >= 2 && !there {
					t.Errorf("%s and %s get no answer: round %d has no sensor: %v\n%s", one, other, n, err, got)
				}
			}
			if asked < 6 {
				t.Errorf("%s and %s: asked %d times in six rounds, so a round had no silence", one, other, asked)
			}
		}
	}
}
