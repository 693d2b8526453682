package ipmi

import (
	"bytes"
	"encoding/hex"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"hwsagent/probes"
	"hwsagent/probes/tape"
	"hwsagent/probes/tape/tapetest"
)

// inventoryImage is a part's inventory with a board and a product, in the format of IPMI.
func inventoryImage(boardSerial, serial, tag string) []byte {
	area := func(head []byte, texts ...string) []byte {
		b := append([]byte{1, 0}, head...)
		for _, s := range texts {
			b = append(append(b, 0xc0|byte(len(s))), s...)
		}
		b = append(b, 0xc1)
		for len(b)%8 != 7 {
			b = append(b, 0)
		}
		b[1] = byte((len(b) + 1) / 8)
		return append(b, checksum(b))
	}
	board := area([]byte{0, 1, 2, 3}, "Example", "Board X", boardSerial, "PN-1", "f")
	product := area([]byte{0}, "Example", "Server 9", "PN-9", "v2", serial, tag)
	all := []byte{1, 0, 0, 1, byte(1 + len(board)/8), 0, 0}
	all = append(all, checksum(all))
	return append(append(all, board...), product...)
}

// withInventory makes f a BMC of a machine with that inventory and UUID.
func withInventory(f *fake, inv, uuid []byte) *fake {
	f.answers[[2]byte{netApp, getSystemGUID}] = always(uuid...)
	f.answers[[2]byte{netStorage, getAreaInfo}] = always(byte(len(inv)), 0, 0)
	f.answers[[2]byte{netStorage, readArea}] = func(d []byte) ([]byte, error) {
		at := min(int(d[1])|int(d[2])<<8, len(inv))
		part := inv[at:min(at+int(d[3]), len(inv))]
		return append([]byte{byte(len(part))}, part...), nil
	}
	return f
}

// lines are the samples but for when the BMC was reached.
func lines(r *probes.Round, bare bool) []string { return tapetest.Lines(r, bare, "hwsagent_") }

// A recording read elsewhere gives the same series; redacted, the same but for serial numbers and the UUID, with checksums that
// are right.
func TestReplay(t *testing.T) {
	uuid := []byte{0x44, 0x45, 0x4c, 0x4c, 0x42, 0x00, 0x30, 0x10, 0x80, 0x51, 0xb4, 0xc0, 0x4f, 0x4d, 0x4e, 0x32}
	build := func() *fake {
		f := newFake(fullRecord(1, 1, "inlet"), fullRecord(2, 2, "outlet"))
		return withInventory(f, inventoryImage("BRD5551234", "SRV9876543", "TAG-4711"), uuid)
	}
	want := tapetest.Collect(t, probeOf(t, build()))
	for _, keep := range [][]string{tape.Kinds(), nil} {
		taped, p := tape.New("ipmi"), probeOf(t, build())
		if err := p.Record(t.Context(), taped); err != nil {
			t.Fatal(err)
		}
		read, text := tapetest.File(t, taped, p, keep...)
		again, err := Replay(read, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		bare := keep == nil
		got := tapetest.Collect(t, again)
		if a, b := lines(got, bare), lines(want, bare); !slices.Equal(a, b) {
			t.Errorf("kept %q: %d series, want %d\n%s\n%s", keep, len(a), len(b), strings.Join(a, "\n"), strings.Join(b, "\n"))
		}
		if again.machine == nil || again.machine.name != "Server 9" || (again.machine.serial == "SRV9876543") != (keep != nil) {
			t.Errorf("kept %q: %+v", keep, again.machine)
		}
		if again.uuid == "" || (again.uuid == parseUUID(uuid)) != (keep != nil) {
			t.Errorf("kept %q: the UUID is %q", keep, again.uuid)
		}
		plain := everything(t, read)
		for _, id := range []string{"BRD5551234", "SRV9876543", "TAG-4711", "pass-word"} {
			there := bytes.Contains(plain, []byte(id)) || strings.Contains(text, hex.EncodeToString([]byte(id)))
			if there != (keep != nil && id != "pass-word") {
				t.Errorf("kept %q: whether %q is in the recording is %v", keep, id, there)
			}
		}
	}
}

// everything is the inventory of a recording, put together.
func everything(t *testing.T, from *tape.Tape) (all []byte) {
	t.Helper()
	for _, e := range from.Exchanges {
		if strings.HasPrefix(e.Ask, "0a.0 11 ") && len(e.Answer) > 1 {
			all = append(all, e.Answer[1:]...)
		}
	}
	if len(all) == 0 {
		t.Fatal("the recording has no inventory")
	}
	return all
}

// An inventory in a format of the maker's is not kept.
func TestForeignInventory(t *testing.T) {
	foreign := append([]byte("VENDOR\x00\x01"), "serial SRV9876543 of no known format"...)
	f := withInventory(newFake(), foreign, make([]byte, 16))
	taped, p := tape.New("ipmi"), probeOf(t, f)
	if err := p.Record(t.Context(), taped); err != nil {
		t.Fatal(err)
	}
	read, _ := tapetest.File(t, taped, p)
	if b := everything(t, read); bytes.Contains(b, []byte("SRV")) || strings.Trim(string(b), "\x00") != "" {
		t.Errorf("%q", b)
	}
}

// FuzzReplay reads recordings that may say anything.
func FuzzReplay(f *testing.F) {
	f.Add([]byte("hwsagent-recording 1 ipmi\n> 06.0 01\n#20010908020091120001 00\n> 0a.0 10 00\n#000100\n> 0a.0 11 00000010\n#1001000000010000fe\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		from, err := tape.Read(bytes.NewReader(text))
		if err != nil {
			return
		}
		r, err := tape.NewRedactor(nil)
		if err != nil {
			t.Fatal(err)
		}
		p, err := Replay(from, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		p.Redact(from, r)
		r.Tape(from)
		_ = p.Collect(t.Context(), probes.NewRound(1000))
	})
}
