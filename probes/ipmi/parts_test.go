package ipmi

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hwsagent/probes/tape"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// locatorRecord is a record that names the inventory of a part.
func locatorRecord(id uint16, device, entity, instance byte, name string) []byte {
	r := make([]byte, 15, 32)
	binary.LittleEndian.PutUint16(r, id)
	r[2], r[3], r[5], r[6], r[7], r[12], r[13] = 0x51, locator, bmc, device, 0x80, entity, instance
	r = append(append(r, 0xc0|byte(len(name))), name...)
	r[4] = byte(len(r) - recordHeader)
	return r
}

// stateRecord is a compact record of a sensor of states.
func stateRecord(id uint16, number, kind, entity, instance byte, name string) []byte {
	r := make([]byte, 31, 48)
	binary.LittleEndian.PutUint16(r, id)
	r[2], r[3], r[5], r[7], r[8], r[9], r[12], r[13], r[23] = 0x51, compactSensor, bmc, number, entity, instance, kind, specific, 1
	r = append(append(r, 0xc0|byte(len(name))), name...)
	r[4] = byte(len(r) - recordHeader)
	return r
}

// inventoryOf is an inventory with a product area.
func inventoryOf(maker, name, serial string) []byte {
	area := []byte{1, 0, 0}
	for _, text := range []string{maker, name, "", "", serial} {
		area = append(append(area, 0xc0|byte(len(text))), text...)
	}
	area = append(area, 0xc1)
	for len(area)%8 != 0 {
		area = append(area, 0)
	}
	area[1] = byte(len(area) / 8)
	header := []byte{1, 0, 0, 0, 1, 0, 0}
	return append(append(header, checksum(header)), area...)
}

// withInventories gives a BMC inventories by number, and counts how often one is begun to be read.
func withInventories(f *fake, all map[byte][]byte) *int {
	begun := new(int)
	f.answers[[2]byte{netStorage, getAreaInfo}] = func(d []byte) ([]byte, error) {
		b, ok := all[d[0]]
		if d[0] != 0 {
			*begun++
		}
		if !ok {
			return nil, notPresent
		}
		return []byte{byte(len(b)), byte(len(b) >> 8), 0}, nil
	}
	f.answers[[2]byte{netStorage, readArea}] = func(d []byte) ([]byte, error) {
		b, at := all[d[0]], int(binary.LittleEndian.Uint16(d[1:]))
		part := b[min(at, len(b)):min(at+int(d[3]), len(b))]
		return append([]byte{byte(len(part))}, part...), nil
	}
	return begun
}

// TestInventoriesOfParts: the inventory of a part goes to the sensor of its state, or else becomes a separate component, the parent of
// the part's sensors; a part without an inventory costs no series.
func TestInventoriesOfParts(t *testing.T) {
	f := newFake(stateRecord(1, 0x41, typeMemory, 32, 1, "DIMM 1"), fullRecord(2, 2, "CPU 1 Temp"),
		locatorRecord(3, 5, 32, 1, "DIMM1 FRU"), locatorRecord(4, 6, 3, 1, "CPU1 FRU"), locatorRecord(5, 7, 10, 1, "PSU1"), locatorRecord(6, 8, 11, 2, "Riser\xff"), locatorRecord(7, 0, 23, 1, "System"))
	f.answers[[2]byte{netSensor, getReading}] = always(40, 0x40, 0x40, 0)
	withInventories(f, map[byte][]byte{5: inventoryOf("Maker A", "Module 32 GiB", "D-0001"), 6: inventoryOf("Maker B", "Processor X", "C-0001"), 8: []byte("not in the format of IPMI")})
	got, err := round(t, probeOf(t, f))
	if err != nil {
		t.Error(err)
	}
	for _, want := range []string{
		`hw_component_info{hw_id="ipmi:20.0.41",hw_model="Module 32 GiB",hw_name="DIMM 1",hw_parent="ipmi:memory_module.1",hw_serial_number="D-0001",hw_type="memory",hw_vendor="Maker A"} 1`,
		`hw_component_info{hw_id="ipmi:processor.1",hw_model="Processor X",hw_name="CPU1 FRU",hw_parent="enclosure",hw_serial_number="C-0001",hw_type="cpu",hw_vendor="Maker B"} 1`,
		`hw_component_info{hw_id="ipmi:20.0.02",hw_name="CPU 1 Temp",hw_parent="ipmi:processor.1",hw_type="temperature"} 1`,
	} {
		if want = strings.Replace(want, "ipmi:memory_module.1", (&part{entity: 32, instance: 1}).id(), 1); !strings.Contains(got, want) {
			t.Errorf("%s is missing", want)
		}
	}
	for _, not := range []string{"PSU1", "Riser", `hw_id="ipmi:` + strings.TrimPrefix((&part{entity: 32, instance: 1}).id(), "ipmi:") + `"`} {
		if strings.Contains(got, not) {
			t.Errorf("%s is there", not)
		}
	}
	if t.Failed() {
		t.Log(got)
	}
}

// TestPartsAreReadSeldom: a few in a round, and each again after an hour; a BMC that stops answering meanwhile is a failure of that round.
func TestPartsAreReadSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		records, all := [][]byte{fullRecord(1, 1, "first")}, map[byte][]byte{}
		for i := byte(1); i <= 10; i++ {
			records = append(records, locatorRecord(uint16(i)+1, i, 32, i, fmt.Sprint("DIMM", i)))
			all[i] = inventoryOf("Maker", "Module", fmt.Sprintf("D-%04d", i))
		}
		f := newFake(records...)
		begun := withInventories(f, all)
		p := probeOf(t, f)
		for i, want := range []int{4, 8, 10, 10, 10} {
			got, err := round(t, p)
			if err != nil || *begun != want || strings.Count(got, `hw_serial_number="D-`) != want {
				t.Errorf("after round %d %d inventories were read, want %d: %v\n%s", i, *begun, want, err, got)
			}
			time.Sleep(time.Minute)
		}
		time.Sleep(time.Hour)
		if _, err := round(t, p); err != nil || *begun != 14 {
			t.Errorf("after an hour: %d, %v", *begun, err)
		}
		p.parts = inventories{}
		f.dead = f.asked + 10
		if _, err := round(t, p); err == nil || !strings.Contains(err.Error(), "inventory of") {
			t.Errorf("a BMC that stops: %v", err)
		}
	})
}

// TestEqualBMCsShareRecords: hundreds of BMCs of one model share one copy of their records, limits included; a BMC with another limit has its own.
func TestEqualBMCsShareRecords(t *testing.T) {
	read := func(limit byte) *repository {
		f := newFake(fullRecord(1, 1, "first"), fullRecord(2, 2, "second"))
		f.answers[[2]byte{netSensor, getThresholds}] = always(0x38, 0, 0, 0, limit, 90, 100)
		p := probeOf(t, f)
		if got, err := round(t, p); err != nil || !strings.Contains(got, fmt.Sprintf(`hw_limit_type="high.degraded",hw_name="first",hw_parent="ipmi:processor.1"} %d`, limit)) {
			t.Errorf("%v\n%s", err, got)
		}
		return p.records
	}
	one, two, other := read(80), read(80), read(70)
	for i := range one.sensors {
		if !one.sensors[i].Value().limitsAreKnown || one.sensors[i] != two.sensors[i] || one.sensors[i] == other.sensors[i] {
			t.Errorf("sensor %d: %+v, %+v, %+v", i, one.sensors[i].Value(), two.sensors[i].Value(), other.sensors[i].Value())
		}
	}
}

// TestSilentInventory: a part whose inventory gets no answer costs the sensors of one round, not of each.
func TestSilentInventory(t *testing.T) {
	f := newFake(fullRecord(2, 2, "CPU 1 Temp"), locatorRecord(3, 5, 32, 1, "DIMM1 FRU"))
	withInventories(f, map[byte][]byte{5: inventoryOf("Maker A", "Module 32 GiB", "D-0001")})
	own, asked := f.answers[[2]byte{netStorage, getAreaInfo}], 0
	f.answers[[2]byte{netStorage, getAreaInfo}] = func(d []byte) ([]byte, error) {
		if d[0] == 5 {
			asked++
			return nil, errSilent
		}
		return own(d)
	}
	p := probeOf(t, f)
	for i := range 3 {
		got, err := round(t, p)
		if there := strings.Contains(got, "CPU 1 Temp"); i > 0 && (!there || err != nil) {
			t.Errorf("round %d: the sensor is there: %t, error %v", i, there, err)
		}
	}
	if asked != 1 {
		t.Errorf("the part was asked %d times in three rounds", asked)
	}
}

// TestInventoryThatIsCutOff: a recording does not contain a field whose end was not read.
func TestInventoryThatIsCutOff(t *testing.T) {
	words, err := tape.NewRedactor(nil)
	if err != nil {
		t.Fatal(err)
	}
	whole := inventoryOf("Maker", "Name", "SERIAL0123456789")
	b := bytes.Clone(whole[:len(whole)-8])
	if redactInventory(b, words); bytes.Contains(b, []byte("SERIAL")) {
		t.Errorf("the beginning of a serial number stays: %q", b)
	}
}

// TestRateUnits: rotations per minute with the minute as a rate once more are rotations per minute; any other rate or modifier is another unit.
func TestRateUnits(t *testing.T) {
	const perSecond, perMinute, divided = 3 << 3, 4 << 3, 1 << 1
	for _, c := range []struct {
		units, base byte
		want        bool
	}{{0, unitRPM, false}, {perMinute, unitRPM, false}, {perMinute | 1, unitRPM, false}, {perSecond, unitRPM, true}, {perMinute, unitVolts, true}, {divided, unitRPM, true}, {divided | perMinute, unitRPM, true}} {
		if got := combined(c.units, c.base); got != c.want {
			t.Errorf("%#x of %d: %t", c.units, c.base, got)
		}
	}
}
