package nut

import (
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"

	"hwsagent/probes"
)

// raw is a server that sends bytes without limit after the first line that it gets, and counts them.
type raw struct {
	address string
	stop    func() (sent int64)
}

func startRaw(t *testing.T, most int64, text string) *raw {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var sent int64
	var all sync.WaitGroup
	all.Go(func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		if _, err := conn.Read(make([]byte, 100)); err != nil {
			return
		}
		if strings.HasPrefix(text, "UPS") {
			_, _ = conn.Write([]byte("BEGIN LIST UPS\n"))
		}
		sent, _ = io.Copy(conn, io.LimitReader(&endless{text: []byte(text)}, most)) // ends when the probe has closed its end
	})
	r := &raw{address: l.Addr().String(), stop: sync.OnceValue(func() int64 { _ = l.Close(); all.Wait(); return sent })}
	t.Cleanup(func() { _ = r.stop() })
	return r
}

// endless repeats a text.
type endless struct {
	text []byte
	at   int
}

func (e *endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = e.text[e.at%len(e.text)]
		e.at++
	}
	return len(b), nil
}

// TestFlood: a upsd that sends 100 MB, in one line or in many, is left at a bound, and costs little memory.
func TestFlood(t *testing.T) {
	for text, want := range map[string]string{
		"x":                   "upsd sends a line of more than 16384 bytes",
		"BEGIN LIST UPS\n":    "has a line of something else",
		"UPS name \"text\"\n": "the list UPS has more than 1000 lines",
		"\n":                  "upsd sends an empty line",
	} {
		r := startRaw(t, 100<<20, text)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, err := round(t, newProbe(t, Config{Target: r.address}))
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), want) || got != "" {
			t.Errorf("%q: %v\n%.300s", text, err, got)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 8<<20 {
			t.Errorf("%q: the round took %d bytes of memory", text, n)
		}
		if n := r.stop(); n > 50<<20 {
			t.Errorf("%q: %d bytes were taken before it was left", text, n)
		}
	}
}

// TestHalf: a connection that ends in the middle of an answer is an error about its device; the devices before it are sent.
func TestHalf(t *testing.T) {
	devices := map[string]string{"a": demo(t), "b": demo(t)}
	answer := of(devices)
	for part := range 10 {
		u := &upsd{answer: func(line string) string {
			text := answer(line)
			if line == "LIST VAR b" {
				return text[:(len(text)-1)*part/9] + "\x00"
			}
			return text
		}}
		u.serve(t)
		got, err := round(t, newProbe(t, Config{Target: u.address, UPS: []string{"a", "b"}}))
		if !errors.Is(err, probes.ErrPartial) || !strings.Contains(got, `hw_battery_charge_ratio{hw_id="ups:a/battery"`) || strings.Contains(got, `hw_battery_charge_ratio{hw_id="ups:b/battery"`) {
			t.Errorf("%d of 9 parts: %v\n%.500s", part, err, got)
		}
	}
}

// TestLies: answers to other questions are refused, and numbers that no device has are not sent.
func TestLies(t *testing.T) {
	for what, said := range map[string]string{
		"another device": "BEGIN LIST VAR z\nVAR z battery.charge \"50\"\nEND LIST VAR z\n",
		"another list":   "BEGIN LIST RW a\nRW a battery.charge \"50\"\nEND LIST RW a\n",
		"another line":   "BEGIN LIST VAR a\nVAR b battery.charge \"50\"\nEND LIST VAR a\n",
		"no list":        "OK\n",
	} {
		u := &upsd{answer: func(string) string { return said }}
		u.serve(t)
		if got, err := round(t, newProbe(t, Config{Target: u.address, UPS: []string{"a"}})); err == nil || strings.Contains(got, "hw_battery_charge_ratio{") {
			t.Errorf("%s: %v\n%s", what, err, got)
		}
	}
	u := &upsd{answer: of(map[string]string{"a": "battery.charge: NaN\nbattery.voltage: 1e999\nups.temperature: 65535\ninput.voltage: -99999999\nbattery.runtime: soon\n" + strings.Repeat("ups.load: 50\n", 1000)})}
	u.serve(t)
	got, err := round(t, newProbe(t, Config{Target: u.address}))
	if err != nil || strings.Count(got, prefix+"ups_load{") != 1 {
		t.Errorf("%v\n%.500s", err, got)
	}
	for _, lie := range []string{"hw_battery_charge_ratio{", "hw_temperature_celsius{", "hw_voltage_volts{", "NaN", "Inf"} {
		if strings.Contains(got, lie) {
			t.Errorf("%s was sent:\n%s", lie, got)
		}
	}
}

// TestDisappears: upsd ends while the probe runs, and comes back.
func TestDisappears(t *testing.T) {
	u := &upsd{answer: of(map[string]string{"demo": demo(t)})}
	u.serve(t)
	p := newProbe(t, Config{Target: u.address})
	before, err := round(t, p)
	if err != nil {
		t.Fatal(err)
	}
	u.stop()
	if got, err := round(t, p); err == nil || strings.Contains(got, "hw_battery_charge_ratio{") {
		t.Errorf("without it: %v\n%.300s", err, got)
	}
	again := &upsd{answer: of(map[string]string{"demo": demo(t)})}
	again.serve(t)
	p.address = again.address
	if got, err := round(t, p); err != nil || got != before {
		t.Errorf("after it came back: %v", err)
	}
}
