package ipmi

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/config"
	"github.com/prometheus/common/model"

	"hwsagent/internal/tools/reference"
	"hwsagent/probes"
	"hwsagent/probes/hw"
)

var update = flag.Bool("update", false, "write the table in docs/reference/probes.md anew")

// fake is a BMC's other side that the tests wrote: commands and their answers, behind a link.
type fake struct {
	answers map[[2]byte]func(data []byte) ([]byte, error)
	asked   int
	closed  int
	dead    int // after as many commands it answers nothing; 0 never
}

func (f *fake) ask(ctx context.Context, _, netFn, command byte, data ...byte) ([]byte, error) {
	f.asked++
	if f.dead > 0 && f.asked > f.dead {
		return nil, errSilent
	}
	if answer := f.answers[[2]byte{netFn, command}]; answer != nil {
		return answer(data)
	}
	return nil, invalidCommand
}

func (f *fake) close(context.Context) { f.closed++ }

// always is an answer that does not depend on the request.
func always(b ...byte) func([]byte) ([]byte, error) {
	return func([]byte) ([]byte, error) { return b, nil }
}

// fullRecord is a record of an analog sensor in degrees, of that number and name.
func fullRecord(id uint16, number byte, name string) []byte {
	r := make([]byte, 48, 64)
	binary.LittleEndian.PutUint16(r, id)
	r[2], r[3], r[5], r[7], r[8], r[9] = 0x51, fullSensor, bmc, number, 3, 1
	r[11], r[12], r[13], r[18], r[21] = 1<<2, typeTemperature, threshold, 0x3f, unitCelsius
	r[24] = 1
	r[47] = 0xc0 | byte(len(name))
	r = append(r, name...)
	r[4] = byte(len(r) - recordHeader)
	return r
}

// newFake is a BMC with these records, of which each sensor reads 40 + its number.
func newFake(records ...[]byte) *fake {
	f := &fake{}
	f.answers = map[[2]byte]func([]byte) ([]byte, error){
		{netApp, getDeviceID}:        always(0x20, 1, 9, 8, 2, 0, 0x91, 0x12, 0, 1, 0),
		{netChassis, getChassis}:     always(1, 0, 0),
		{netStorage, getRepository}:  always(0x51, byte(len(records)), 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0, 0),
		{netStorage, reserveRecords}: always(1, 0),
		{netStorage, getLogInfo}:     always(0x51, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0),
		{netSensor, getReading}:      func(d []byte) ([]byte, error) { return []byte{40 + d[0], 0x40, 0}, nil },
		{netSensor, getThresholds}:   always(0x38, 0, 0, 0, 80, 90, 100),
		{netStorage, getRecord}: func(d []byte) ([]byte, error) {
			id, at, n := binary.LittleEndian.Uint16(d[2:]), int(d[4]), int(d[5])
			for i, r := range records {
				if own := binary.LittleEndian.Uint16(r); own != id && !(id == 0 && i == 0) {
					continue
				}
				next := []byte{0xff, 0xff}
				if i+1 < len(records) {
					next = records[i+1][:2]
				}
				if at > len(r) {
					return nil, cannotReturn
				}
				rest := r[at:]
				if n != wholePart {
					rest = rest[:min(n, len(rest))]
				}
				return append(slices.Clone(next), rest...), nil
			}
			return nil, notPresent
		},
	}
	return f
}

func probeOf(t *testing.T, f *fake) *Probe {
	t.Helper()
	p := newProbe(t, Config{Target: "192.0.2.1", Username: "u", Password: "pass-word"})
	p.open = func(context.Context, bool) (link, error) { return f, nil }
	return p
}

// TestOddRecords: a record that cannot be parsed loses only itself.
func TestOddRecords(t *testing.T) {
	short := fullRecord(2, 2, "lies")
	short[4] = 200 // says that it is longer than it is
	stub := []byte{3, 0, 0x51, fullSensor, 2, 0, 0}
	other := []byte{4, 0, 0x51, 0xc0, 1, 0}
	f := newFake(fullRecord(1, 1, "first"), short, stub, other, fullRecord(9, 9, "last"))
	got, err := round(t, probeOf(t, f))
	if err != nil || !strings.Contains(got, `ipmi_temperature_celsius{id="1",name="first"} 41`) || !strings.Contains(got, `ipmi_temperature_celsius{id="9",name="last"} 49`) ||
		!strings.Contains(got, "ipmi_records_unread{} 2\n") || !strings.Contains(got, `hw_temperature_limit_celsius{hw_id="ipmi:20.0.09",hw_limit_type="high.critical",hw_name="last",hw_parent="ipmi:processor.1"} 90`) {
		t.Errorf("%v\n%s", err, got)
	}
	if f.closed != 1 {
		t.Errorf("closed %d times", f.closed)
	}
}

// TestParts: a BMC that returns 16 bytes at a time, and loses reservations.
func TestParts(t *testing.T) {
	f := newFake(fullRecord(1, 1, "first sensor"), fullRecord(2, 2, "second"))
	whole, lost := f.answers[[2]byte{netStorage, getRecord}], 0
	f.answers[[2]byte{netStorage, getRecord}] = func(d []byte) ([]byte, error) {
		if d[5] > smallPart {
			return nil, cannotReturn
		}
		if lost++; lost%5 == 0 {
			return nil, reservationLost
		}
		return whole(d)
	}
	got, err := round(t, probeOf(t, f))
	if err != nil || !strings.Contains(got, `name="first sensor"} 41`) || !strings.Contains(got, `name="second"} 42`) || lost < 5 {
		t.Errorf("%d asked: %v\n%s", lost, err, got)
	}
}

// TestCircle: records that lead back to themselves end.
func TestCircle(t *testing.T) {
	f := newFake(fullRecord(1, 1, "a"), fullRecord(2, 2, "b"))
	get := f.answers[[2]byte{netStorage, getRecord}]
	f.answers[[2]byte{netStorage, getRecord}] = func(d []byte) ([]byte, error) {
		b, err := get(d)
		if err == nil && b[0] == 0xff {
			b[0], b[1] = 1, 0
		}
		return b, err
	}
	got, err := round(t, probeOf(t, f))
	if err != nil || !strings.Contains(got, "ipmi_sensors{} ") || f.asked > 100 {
		t.Errorf("%d asked: %v\n%s", f.asked, err, got)
	}
}

// TestCache: records are read again only when the BMC says that they changed.
func TestCache(t *testing.T) {
	f := newFake(fullRecord(1, 1, "a"))
	p := probeOf(t, f)
	for range 3 {
		if _, err := round(t, p); err != nil {
			t.Fatal(err)
		}
	}
	before := p.records
	f.answers[[2]byte{netStorage, getRepository}] = always(0x51, 1, 0, 0, 0, 9, 9, 9, 9, 0, 0, 0, 0, 0)
	if _, err := round(t, p); err != nil || p.records == before {
		t.Errorf("%v; the records were not read again", err)
	}
}

// TestDies: when a BMC stops answering after any number of commands, the values read are kept, the session is closed, and the round ends.
func TestDies(t *testing.T) {
	for dead := 1; dead < 18; dead++ {
		f := newFake(fullRecord(1, 1, "a"), fullRecord(2, 2, "b"))
		f.dead = dead
		p := probeOf(t, f)
		got, err := round(t, p)
		if all := f.asked <= dead; (err == nil) != all || f.closed != 1 || f.asked > dead+1 {
			t.Errorf("after %d: %d asked, %d closed, %v\n%s", dead, f.asked, f.closed, err, got)
		}
		f.dead = 0
		if got, err := round(t, p); err != nil || !strings.Contains(got, `name="b"} 42`) {
			t.Errorf("after it came back: %v\n%s", err, got)
		}
	}
}

// TestShortAnswers: each answer is cut at each length; nothing breaks, and the other parts are read.
func TestShortAnswers(t *testing.T) {
	for key := range newFake().answers {
		for n := range 20 {
			f := newFake(fullRecord(1, 1, "a"))
			whole := f.answers[key]
			f.answers[key] = func(d []byte) ([]byte, error) {
				b, err := whole(d)
				return b[:min(n, len(b))], err
			}
			r := probes.NewRound(0)
			err := probeOf(t, f).Collect(t.Context(), r)
			if len(r.Samples()) == 0 || err != nil && !errors.Is(err, probes.ErrPartial) || f.asked > 3000 {
				t.Errorf("%x cut at %d: %d samples, %d asked, %v", key, n, len(r.Samples()), f.asked, err)
			}
			_ = text(t, r)
		}
	}
}

func TestPower(t *testing.T) {
	f := newFake()
	watts := []byte{groupDCMI, 0x2c, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x40}
	f.answers[[2]byte{netGroup, getPower}] = always(watts...)
	got, err := round(t, probeOf(t, f))
	if err != nil || !strings.Contains(got, "ipmi_dcmi_power_consumption_watts{} 300\n") || !strings.Contains(got, `hw_host_power_watts{hw_quality="measured"} 300`) {
		t.Errorf("%v\n%s", err, got)
	}
	watts[17] = 0 // not measured at present
	if got, err := round(t, probeOf(t, f)); err != nil || strings.Contains(got, "watts") || !strings.Contains(got, `ipmi_up{collector="dcmi"} 0`) {
		t.Errorf("%v\n%s", err, got)
	}
}

// TestStates reads each state of the tables.
func TestStates(t *testing.T) {
	for _, tc := range []struct {
		kind, reading byte
		states        uint16
		want          hw.Status
	}{
		{typeTemperature, threshold, 0, ok}, {typeTemperature, threshold, 1, degraded}, {typeTemperature, threshold, 8, degraded}, {typeTemperature, threshold, 0b011000, failed},
		{typeTemperature, threshold, 4, failed}, {typePowerSupply, specific, 1, ok}, {typePowerSupply, specific, 0b11, failed}, {typePowerSupply, specific, 0b1001, degraded},
		{typePowerSupply, specific, 0b101, ok | predicted}, {typeDriveSlot, specific, 0b11, failed}, {typeDriveSlot, specific, 0b101, ok | predicted}, {typeIntrusion, specific, 0, ok},
		{typeIntrusion, specific, 1, degraded}, {typeMemory, specific, 1 << 6, ok}, {typeMemory, specific, 1<<6 | 2, failed}, {typeBattery, specific, 4, ok}, {typeBattery, specific, 1, degraded},
		{typeFan, 0x0b, 1, ok}, {typeFan, 0x0b, 2, degraded}, {typeFan, 0x0b, 1 << 5, failed}, {typeFan, 4, 2, ok | predicted}, {0xc1, specific, 1, 0}, {typeFan, 0x70, 1, 0},
	} {
		r := reading{sensor: &sensor{kind: tc.kind, reading: tc.reading}, there: true, known: true, states: tc.states}
		if got := r.status(); got != tc.want {
			t.Errorf("type %02x, %02x, states %b: %q, want %q", tc.kind, tc.reading, tc.states, got, tc.want)
		}
	}
	if got := (&reading{sensor: &sensor{}}).status(); got != hw.Unknown {
		t.Errorf("a sensor that says nothing is %q", got)
	}
}

func TestValue(t *testing.T) {
	for _, tc := range []struct {
		name   string
		s      sensor
		raw    byte
		want   float64
		wanted bool
	}{
		{"plain", sensor{factors: factors{m: 1}}, 200, 200, true},
		{"scaled", sensor{factors: factors{m: 63, rExp: -3}}, 205, 12.915, true},
		{"offset", sensor{factors: factors{m: 2, b: 5, bExp: 1, rExp: -1}}, 10, 7, true},
		{"big", sensor{factors: factors{m: 1, rExp: 2}}, 3, 300, true},
		{"small offset", sensor{factors: factors{m: 1, b: 5, bExp: -2}}, 1, 1.05, true},
		{"twos' complement", sensor{format: 2, factors: factors{m: 1}}, 0xfb, -5, true},
		{"ones' complement", sensor{format: 1, factors: factors{m: 1}}, 0xfa, -5, true},
		{"1/x", sensor{linear: 7, factors: factors{m: 1}}, 4, 0.25, true},
		{"1/0", sensor{linear: 7, factors: factors{m: 1}}, 0, 0, false},
		{"square root", sensor{linear: 10, factors: factors{m: 1}}, 81, 9, true},
		{"unknown", sensor{linear: 12, factors: factors{m: 1}}, 1, 0, false},
	} {
		got, ok := tc.s.value(tc.raw)
		if ok != tc.wanted || ok && math.Abs(got-tc.want) > 1e-12 || ok && tc.name == "scaled" && got != 12.915 {
			t.Errorf("%s is %v, %t", tc.name, got, ok)
		}
	}
	if f := parseFactors([]byte{0xff, 0xc0, 0x01, 0x80, 0, 0xd2}); f != (factors{m: -1, b: -511, rExp: -3, bExp: 2}) {
		t.Errorf("the factors are %+v", f)
	}
}

func TestText(t *testing.T) {
	for _, tc := range []struct {
		typeLength byte
		b          []byte
		want       string
	}{
		{0xc3, []byte("abc"), "abc"}, {0xc5, []byte("ab"), "ab"}, {0xc2, []byte{0xb0, 'C'}, "°C"},
		{0x83, []byte{0x29, 0xdc, 0xa6}, "IPM"}, // the example of section 43.15
		{0x44, []byte{0x21, 0xc3}, "123."}, {0x9f, []byte{1}, "!"}, {0xc0, nil, ""},
	} {
		if got := parseText(tc.typeLength, tc.b); got != tc.want {
			t.Errorf("%02x %x is %q, want %q", tc.typeLength, tc.b, got, tc.want)
		}
	}
}

func TestConfig(t *testing.T) {
	three, many := 3, 21
	for _, tc := range []struct {
		c    Config
		want string
	}{
		{Config{Target: "192.0.2.1", Username: "u", Password: "p", Retries: &three}, ""}, {Config{Target: "/dev/ipmi0"}, ""}, {Config{Target: "[2001:db8::1]:6230", Username: "u", PasswordFile: "f"}, ""},
		{Config{}, "target: is missing"}, {Config{Target: "https://bmc", Username: "u", Password: "p"}, "target: "}, {Config{Target: "b:0", Username: "u", Password: "p"}, "target: "},
		{Config{Target: "b"}, "username: is missing"}, {Config{Target: "b", Username: "u"}, "password: is missing"}, {Config{Target: "b", Username: "u", Password: "p", PasswordFile: "f"}, "not both"},
		{Config{Target: "b", Username: strings.Repeat("u", 17), Password: "p"}, "longer than 16"}, {Config{Target: "b", Username: "u", Password: config.Secret(strings.Repeat("p", 21))}, "longer than 20"},
		{Config{Target: "/dev/ipmi0", Username: "u"}, "has no login"}, {Config{Target: "b", Username: "u", Password: "p", Privilege: "root"}, "privilege: "},
		{Config{Target: "b", Username: "u", Password: "p", CipherSuite: 1}, "cipher_suite: "}, {Config{Target: "b", Username: "u", Password: "p", Retries: &many}, "retries: "},
		{Config{Target: "b", Username: "u", Password: "p", PacketTimeout: model.Duration(-1)}, "packet_timeout: "},
	} {
		err := tc.c.Validate()
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%+v: %v, want %q", tc.c, err, tc.want)
		}
	}
}

// TestReference holds the table of the families in docs/reference/probes.md to the code.
func TestReference(t *testing.T) {
	rows := map[string][2]string{}
	for _, f := range newFamilies() {
		rows[f.Name] = [2]string{string(f.Type), f.Help}
	}
	reference.Section(t, "../../docs/reference/probes.md", "ipmi", reference.Families(rows), *update)
}
