package snmptool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gosnmp/gosnmp"
	"go.uber.org/goleak"
	"go.yaml.in/yaml/v4"

	"hwsagent/probes/snmp"
	"hwsagent/probes/snmp/recording"
	"hwsagent/probes/tape"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ours is an invented device with everything that a recording must not keep.
const ours = `1.3.6.1.2.1.1.1.0|4|Example Switch 24, version 3.2.1.0, core-switch-17
1.3.6.1.2.1.1.2.0|6|1.3.6.1.4.1.32473.1.1
1.3.6.1.2.1.1.3.0|67|4711
1.3.6.1.2.1.1.4.0|4|Jane Roe <jane@example.org>
1.3.6.1.2.1.1.5.0|4|core-switch-17.example.org
1.3.6.1.2.1.1.6.0|4|Cellar 4
1.3.6.1.2.1.2.2.1.2.7|4|GigabitEthernet0/7
1.3.6.1.2.1.2.2.1.6.7|4x|0a1b2c3d4e5f
1.3.6.1.2.1.2.2.1.8.7|2|1
1.3.6.1.2.1.2.2.1.10.7|65|4294967295
1.3.6.1.2.1.4.20.1.1.10.20.30.40|64x|0a141e28
1.3.6.1.2.1.25.4.2.1.5.99|4|--password=hunter22
1.3.6.1.2.1.31.1.1.1.6.7|70|18446744073709551615
1.3.6.1.2.1.31.1.1.1.18.7|4|to the vault
1.3.6.1.2.1.47.1.1.1.1.7.3|4|Inlet
1.3.6.1.2.1.47.1.1.1.1.11.1|4|SN12345678
1.3.6.1.2.1.99.1.1.1.1.3|2|8
1.3.6.1.2.1.99.1.1.1.2.3|2|9
1.3.6.1.2.1.99.1.1.1.3.3|2|1
1.3.6.1.2.1.99.1.1.1.4.3|2|235
1.3.6.1.2.1.99.1.1.1.5.3|2|1
1.3.6.1.4.1.32473.9.1.0|4|unit SN12345678 at 10.20.30.40, 0A:1B:2C:3D:4E:5F
1.3.6.1.4.1.32473.9.2.0|4|FOC1234X5YZ
1.3.6.1.4.1.32473.9.3.0|4|WS-C3750G-24TS
1.3.6.1.4.1.32473.9.4.0|68x|9f780442f60000
1.3.6.1.4.1.32473.9.5.0|64x|0a141e28
1.3.6.1.4.1.32473.9.6.0|4|key s3cr3tcommunity
1.3.6.1.4.1.32473.9.7.0|4|line 1
1.3.6.1.6.3.18.1.1.1.2.1|4|s3cr3tcommunity
`

// private are the words that a recording must not contain by default, ignoring case.
var private = []string{"core-switch", "jane", " roe <", "cellar", "0a1b2c", "0a:1b", "10.20.30.40", "0a141e28", "hunter22", "vault", "12345678", "foc1234", "s3cr3t", "1.3.6.1.6.3.18"}

func serve(t *testing.T, text string) string {
	t.Helper()
	rec, notes, err := recording.Parse(strings.NewReader(text))
	if err != nil || len(notes) > 0 {
		t.Fatal(notes, err)
	}
	a, err := recording.Serve(rec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	return a.Addr()
}

func options(target string) Options {
	return Options{Target: target, Auth: snmp.Auth{Community: "s3cr3tcommunity"}, Timeout: time.Second, Retries: 1, Logger: slog.New(slog.DiscardHandler)}
}

func record(t *testing.T, device, file string, keep ...string) (Recorded, error) {
	t.Helper()
	words, err := tape.NewRedactor(keep)
	if err != nil {
		t.Fatal(err)
	}
	o := options(serve(t, device))
	return Record(t.Context(), config(o.Target, o.Auth, o.Timeout, o.Retries), file, words, o.Logger)
}

// A recording contains no data that identifies the device's owner, keeps the rest to the octet, and can be read again.
func TestRecord(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r.snmprec")
	done, err := record(t, ours, file)
	if err != nil || done.Problem != "" {
		t.Fatal(err, done)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	// Random replacements can spell a short word by chance, but not in two recordings.
	again := filepath.Join(t.TempDir(), "again.snmprec")
	if done, err := record(t, ours, again); err != nil || done.Problem != "" {
		t.Fatal(err, done)
	}
	second, err := os.ReadFile(again)
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range private {
		if strings.Contains(strings.ToLower(string(text)), word) && strings.Contains(strings.ToLower(string(second)), word) {
			t.Errorf("%q is in both recordings:\n%s", word, text)
		}
	}
	for _, line := range strings.Split(ours, "\n") {
		oid, _, _ := strings.Cut(line, "|")
		same := slices.ContainsFunc([]string{".2.2.1.2.", ".2.2.1.8.", ".2.2.1.10.", ".31.1.1.1.6.", ".99.1.1.1", ".1.1.2.0", ".1.1.3.0", ".32473.9.3.", ".32473.9.4.", ".47.1.1.1.1.7.", ".32473.9.7"},
			func(part string) bool { return strings.Contains(oid, part) })
		if same && !strings.Contains(string(text), line+"\n") {
			t.Errorf("%q is not in the recording:\n%s", line, text)
		}
	}
	if !strings.Contains(string(text), "version 3.2.1.0") {
		t.Error("a version was taken for an address")
	}
	if rec, notes, err := recording.Parse(bytes.NewReader(text)); err != nil || len(notes) > 0 || rec.Len() != done.Variables || done.LeftOut != 3 {
		t.Errorf("%+v: %v %v", done, notes, err)
	}
	if _, err := record(t, ours, file); err == nil {
		t.Error("a file that exists is written over")
	}
	kept := filepath.Join(t.TempDir(), "kept.snmprec")
	if _, err := record(t, ours, kept, tape.Kinds()...); err != nil {
		t.Fatal(err)
	}
	text, _ = os.ReadFile(kept)
	for _, word := range []string{"core-switch-17.example.org", "Cellar 4", "0a1b2c3d4e5f", "SN12345678 at 10.20.30.40", "FOC1234X5YZ"} {
		if !strings.Contains(string(text), word) {
			t.Errorf("%q is not kept:\n%s", word, text)
		}
	}
	for _, word := range []string{"hunter22", "s3cr3t"} {
		if strings.Contains(string(text), word) {
			t.Errorf("%q is kept", word)
		}
	}
}

func TestWalk(t *testing.T) {
	target := serve(t, ours)
	objects, err := Walk(t.Context(), options(target), "ifDescr")
	if err != nil || len(objects) != 1 || objects[0] != (Object{"1.3.6.1.2.1.2.2.1.2.7", "ifDescr.7", "OctetString", "GigabitEthernet0/7"}) {
		t.Errorf("%+v %v", objects, err)
	}
	if objects, err = Walk(t.Context(), options(target), "1.3.6.1"); err != nil || len(objects) != strings.Count(ours, "\n") {
		t.Errorf("%d %v", len(objects), err)
	}
	if objects, err = Walk(t.Context(), options(target), "1.3.6.1.2.1.1.5.0"); err != nil || len(objects) != 1 || objects[0].Name != "sysName.0" {
		t.Errorf("%v %v", objects, err)
	}
	for name, oid := range map[string]string{"system": "1.3.6.1.2.1.1", "ifTable": "1.3.6.1.2.1.2.2", "IF-MIB::ifTable": "1.3.6.1.2.1.2.2",
		"SNMPv2-MIB::sysName.0": "1.3.6.1.2.1.1.5.0", "ifDescr.7": "1.3.6.1.2.1.2.2.1.2.7", "mib-2": "1.3.6.1.2.1"} {
		want, err := Walk(t.Context(), options(target), oid)
		if err != nil || len(want) == 0 {
			t.Fatalf("%s: %v %v", oid, want, err)
		}
		if got, err := Walk(t.Context(), options(target), name); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v: %v", name, got, want, err)
		}
	}
	for _, name := range []string{"noSuchName", "sysName.x", "::"} {
		if _, err = Walk(t.Context(), options(target), name); !errors.Is(err, ErrName) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Unread variables are reported by vendor.
func TestTest(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r.snmprec")
	if err := os.WriteFile(file, []byte(ours+"rubbish\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	done, err := Test(t.Context(), file, []string{"system", "if_mib", "entity_sensor"}, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if len(done.Notes) != 1 || len(done.Modules) != 3 || done.Modules[2].Metrics["hw_temperature_celsius"] != 1 || done.Modules[2].Error != "" {
		t.Errorf("%+v", done)
	}
	if u := done.Unread[0]; u != (Unread{"1.3.6.1.4.1.32473", 32473, 7, "1.3.6.1.4.1.32473.9.1.0"}) {
		t.Errorf("%+v", u)
	}
	unread := 0
	for _, u := range done.Unread {
		unread += u.Variables
	}
	if done.Read+unread != done.Variables || done.Read < 15 {
		t.Errorf("%d read, %d unread of %d", done.Read, unread, done.Variables)
	}
	var text strings.Builder
	if err := done.Write(&text); err != nil || !strings.Contains(text.String(), "7 below 1.3.6.1.4.1.32473 (enterprise 32473)") {
		t.Errorf("%v\n%s", err, &text)
	}
}

// counting answers one community only, and counts packets by community.
func counting(t *testing.T, at string, community string, count *[2]atomic.Int64) {
	t.Helper()
	conn, err := net.ListenPacket("udp", at)
	if err != nil {
		t.Skip("cannot listen at", at, err)
	}
	rec, _, err := recording.Parse(strings.NewReader(ours))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() { _ = conn.Close(); <-ended })
	go func() {
		defer close(ended)
		codec, buf := &gosnmp.GoSNMP{Version: gosnmp.Version2c}, make([]byte, 4096)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			req, err := codec.SnmpDecodePacket(bytes.Clone(buf[:n]))
			if err != nil {
				continue
			}
			if req.Community != community {
				count[0].Add(1)
				continue
			}
			count[1].Add(1)
			if out, err := rec.Answer(req).MarshalMsg(); err == nil {
				_, _ = conn.WriteTo(out, from) // a lost answer is a lost packet
			}
		}
	}()
}

// Each login is tried once per device, in order, until one is answered; the output is configuration
// without secrets.
func TestDiscover(t *testing.T) {
	first, err := net.ListenPacket("udp", "127.9.9.1:0")
	if err != nil {
		t.Skip("needs 127/8:", err)
	}
	port := first.LocalAddr().(*net.UDPAddr).Port
	_ = first.Close()
	var open, shut [2]atomic.Int64
	counting(t, fmt.Sprintf("127.9.9.1:%d", port), "second", &open)
	counting(t, fmt.Sprintf("127.9.9.2:%d", port), "third", &shut)
	last := 0
	found, err := Discover(t.Context(), Search{
		Ranges: []string{"127.9.9.0/29", "127.9.9.1"}, Port: uint16(port), Rate: 1000, Timeout: 200 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
		Logins:   []snmp.Auth{{Community: "first"}, {Community: "second"}, {CommunityFile: "/dev/null"}},
		Progress: func(asked, all, _ int) { last = all - asked },
	})
	if err != nil {
		t.Fatal(err)
	}
	if found.Asked != 6 || last != 0 || len(found.Devices) != 1 || found.Devices[0].Login != 1 || found.Devices[0].Name != "core-switch-17.example.org" {
		t.Errorf("%+v", found)
	}
	if a, b := open[0].Load(), open[1].Load(); a != 1 || b != 1 {
		t.Errorf("the device got %d packets with the wrong community and %d with the right one, want 1 and 1", a, b)
	}
	if a, b := shut[0].Load(), shut[1].Load(); a != 2 || b != 0 {
		t.Errorf("the other got %d and %d, want 2 and 0", a, b)
	}
	var text strings.Builder
	if err := found.Write(&text, []snmp.Auth{{Community: "first"}, {Community: "second"}}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text.String(), "second") {
		t.Errorf("a secret is printed:\n%s", &text)
	}
	var c struct{ Probes []map[string]any }
	if err := yaml.Load([]byte(text.String()), &c); err != nil || len(c.Probes) != 1 || fmt.Sprint(c.Probes[0]["targets"]) != fmt.Sprintf("[127.9.9.1:%d]", port) {
		t.Errorf("%v\n%s", err, &text)
	}
	if b, err := json.Marshal(found); err != nil || strings.Contains(string(b), "null") {
		t.Errorf("%s %v", b, err)
	}
}

func TestAddresses(t *testing.T) {
	for _, tc := range []struct {
		ranges string
		n      int
		first  string
	}{
		{"192.0.2.0/24", 254, "192.0.2.1"}, {"192.0.2.9", 1, "192.0.2.9"}, {"192.0.2.8/31", 2, "192.0.2.8"}, {"192.0.2.77/30", 2, "192.0.2.77"},
		{"2001:db8::/120", 256, "2001:db8::"}, {"192.0.2.0/24 192.0.2.0/25", 254, "192.0.2.1"}, {"10.0.0.0/16", 65534, "10.0.0.1"},
		{"10.0.0.0/15", 0, ""}, {"2001:db8::/64", 0, ""}, {"10.0.0.0/16 10.1.0.0/24", 0, ""}, {"switch", 0, ""}, {"", 0, ""},
	} {
		all, err := addresses(strings.Fields(tc.ranges), 161)
		if len(all) != tc.n || (err == nil) != (tc.n > 0) || tc.n > 0 && all[0] != tc.first {
			t.Errorf("%q: %d %v", tc.ranges, len(all), err)
		}
		for _, a := range all {
			if _, err := netip.ParseAddr(a); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// An error in a login is reported without its secrets.
func TestLogin(t *testing.T) {
	if a, err := Login("{version: 3, username: u, password_file: f}"); err != nil || a.Username != "u" {
		t.Errorf("%+v %v", a, err)
	}
	if a, err := Login(""); err != nil || !reflect.DeepEqual(a, snmp.Auth{}) {
		t.Errorf("no login: %+v %v", a, err)
	}
	for _, text := range []string{"{comunity: CANARY}", "{community: [CANARY]}", "{community: CANARY"} {
		if _, err := Login(text); err == nil || strings.Contains(err.Error(), "CANARY") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
