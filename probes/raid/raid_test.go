//go:build linux

package raid

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"go.uber.org/goleak"

	"hwsagent/probes"
	"hwsagent/probes/hw"
	"hwsagent/probes/tape"
	"hwsagent/probes/tape/tapetest"
)

var update = flag.Bool("update", false, "write testdata/*.prom anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var tools = []string{"storcli64", "ssacli", "arcconf", "sas3ircu"}

// machine returns a directory with the programs' answers, and a probe that runs that program.
func machine(t *testing.T, program string) (dir string, p *Probe) {
	t.Helper()
	dir = t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata")); err != nil {
		t.Fatal(err)
	}
	p, err := New(Config{Command: []string{"/bin/sh", filepath.Join(dir, "tool"), "/opt/" + program}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return dir, p
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// round returns what a round says, sorted, and its error.
func round(t *testing.T, p *Probe) (string, error) {
	t.Helper()
	r := probes.NewRound(0)
	err := p.Collect(t.Context(), r)
	var lines []string
	for _, s := range r.Samples() {
		var labels []string
		for i := 0; i < len(s.Labels); i += 2 {
			if s.Labels[i+1] != "" {
				labels = append(labels, fmt.Sprintf("%s=%q", s.Labels[i], s.Labels[i+1]))
			}
		}
		slices.Sort(labels)
		lines = append(lines, fmt.Sprintf("%s{%s} %v\n", s.Family.Name, strings.Join(labels, ","), s.Value))
	}
	slices.Sort(lines)
	for i, l := range lines {
		if i > 0 && l[:strings.LastIndexByte(l, ' ')] == lines[i-1][:strings.LastIndexByte(lines[i-1], ' ')] {
			t.Errorf("the series %s is there twice", l)
		}
	}
	return strings.Join(lines, ""), err
}

func TestGolden(t *testing.T) {
	for _, tool := range tools {
		_, p := machine(t, tool)
		got, err := round(t, p)
		if err != nil {
			t.Errorf("%s: %v", tool, err)
		}
		if *update {
			put(t, "testdata", tool+".prom", got)
		}
		if d := cmp.Diff(strings.Split(read(t, "testdata/"+tool+".prom"), "\n"), strings.Split(got, "\n")); d != "" {
			t.Errorf("%s reads differently (-want +got):\n%s", tool, d)
		}
	}
}

// TestJoins: a disk has the ID that smartctl's data (its "Logical Unit id" and "WWN") and the kernel's wwid give it.
func TestJoins(t *testing.T) {
	for _, c := range []struct{ what, kind, printed, unit string }{
		{"Seagate SAS, device", "SAS", "5000C500A1B2C3D4", "naa.5000c500a1b2c3d7"},
		{"Seagate SAS, port", "SAS", "0x5000c500a1b2c3d5", "0x5000c500a1b2c3d7"},
		{"Toshiba SAS, port", "SAS", "50000398A1B2C3D2", "50000398a1b2c3d1"},
		{"HGST SAS, port", "SAS", "5000CCA0A1B2C3D5", "5000cca0a1b2c3d4"},
		{"Samsung SAS, port", "SAS", "5002538A00000012", "5002538a00000010"},
		{"SATA", "SATA", "500A07511F000001", "500a07511f000001"},
	} {
		if got, want := diskID(c.kind, c.printed, "M", "S"), hw.DiskID(c.unit, "M", "S"); got != want {
			t.Errorf("%s: %s, want %s", c.what, got, want)
		}
	}
	for _, c := range [][2]string{{"SATA", "3001438030000003"}, {"NVMe", "5000C500A1B2C3D4"}, {"SAS", "0"}, {"SAS", ""}, {"SAS", "5000C500"}} {
		if got := diskID(c[0], c[1], "M", "S"); got != "serial:M:S" {
			t.Errorf("%q: %s", c, got)
		}
	}
}

// TestHanging: the program does not end; it is killed, and the next round works.
func TestHanging(t *testing.T) {
	dir, p := machine(t, "storcli64")
	put(t, dir, "hang", "")
	p.config.ReadTimeout = model.Duration(time.Second)
	for range 2 {
		if got, err := round(t, p); err == nil || !strings.Contains(err.Error(), "it did not end in time and was killed") || got != "" {
			t.Errorf("%v\n%s", err, got)
		}
	}
	if n := strings.Count(read(t, filepath.Join(dir, "calls")), "\n"); n != 2 || p.flights.Len() != 0 {
		t.Errorf("%d calls, %d on their way", n, p.flights.Len())
	}
	if err := os.Remove(filepath.Join(dir, "hang")); err != nil {
		t.Fatal(err)
	}
	p.config.ReadTimeout = 0
	if got, err := round(t, p); err != nil || !strings.Contains(got, "hw_status") {
		t.Errorf("after it: %v\n%s", err, got)
	}
}

// TestStuck: the kernel does not release the program; no second one is started until it does.
func TestStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, p := machine(t, "ssacli")
		resume := make(chan struct{})
		var calls atomic.Int32
		p.program = func(context.Context, ...string) ([]byte, error) {
			calls.Add(1)
			<-resume
			return []byte(read(t, "testdata/ssacli/ctrl_all_show_config_detail")), nil
		}
		if _, err := round(t, p); err == nil || !strings.Contains(err.Error(), "does not end, although it was killed") {
			t.Errorf("the error is %v", err)
		}
		if _, err := round(t, p); err == nil || !strings.Contains(err.Error(), "of an earlier round has not ended") || calls.Load() != 1 {
			t.Errorf("%d calls; the error is %v", calls.Load(), err)
		}
		close(resume)
		synctest.Wait()
		if got, err := round(t, p); err != nil || got == "" {
			t.Errorf("after it: %v", err)
		}
	})
}

func TestFlood(t *testing.T) {
	for _, tool := range tools {
		dir, p := machine(t, tool)
		put(t, dir, "flood", "")
		if got, err := round(t, p); err == nil || !strings.Contains(err.Error(), "it prints more than max_output") || got != "" {
			t.Errorf("%s: %v\n%.200s", tool, err, got)
		}
	}
}

// TestHalf: half of an answer is an error; what the other half said is sent. ssacli has no word at the end of its text.
func TestHalf(t *testing.T) {
	for _, tool := range tools {
		dir, p := machine(t, tool)
		files, err := os.ReadDir(filepath.Join(dir, tool))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			name := filepath.Join(tool, f.Name())
			whole := read(t, filepath.Join(dir, name))
			put(t, dir, name, whole[:len(whole)/2])
			got, err := round(t, p)
			if quiet := tool == "ssacli" || strings.Contains(name, "status"); !quiet && (err == nil || (got != "") != errors.Is(err, probes.ErrPartial)) {
				t.Errorf("%s: %v\n%.300s", name, err, got)
			}
			put(t, dir, name, whole)
		}
	}
}

// TestDisappears: the program is gone, or not executable; the error says so and names the remedy.
func TestDisappears(t *testing.T) {
	dir, _ := machine(t, "storcli64")
	put(t, dir, "storcli64-locked", "")
	for path, want := range map[string]string{"/nonexistent/storcli64": "no such file", filepath.Join(dir, "storcli64-locked"): "docs/probes/raid.md has the rule for sudo"} {
		p, err := New(Config{Command: []string{path}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := round(t, p); err == nil || !strings.Contains(err.Error(), want) || got != "" {
			t.Errorf("%s: %v", path, err)
		}
	}
	p, err := New(Config{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	p.find = func() []string { return nil }
	if _, err := round(t, p); err == nil || !strings.Contains(err.Error(), "no program of a RAID controller is installed (looked for storcli,") {
		t.Errorf("without programs: %v", err)
	}
}

// TestLies: a program that names one disk ten thousand times, with numbers that no hardware has, costs no minute; the IDs differ.
func TestLies(t *testing.T) {
	dir, p := machine(t, "storcli64")
	row := `{"EID:Slt":"1:1","State":"Onln","DG":"x","Size":"-5 GB","Intf":"SAS","Model":"M"}`
	put(t, dir, "storcli64/call_show_all_J_nolog", `{"Controllers":[{"Response Data":{"Basics":{"Serial Number":7},"HwCfg":{"ROC temperature(Degree Celsius)":65535},"PD LIST":[`+
		strings.Repeat(row+",", 10_000)+row+`,7,null,"x"],"VD LIST":{"a":1}}}]}`)
	got, err := round(t, p)
	if n := strings.Count(got, "hw_component_info{"); err != nil || n != 10_002 || !strings.Contains(got, `hw_id="raid:7/disk:1:1#10001"`) {
		t.Errorf("%d components: %v\n%.300s", n, err, got)
	}
	if strings.Contains(got, "hw_temperature") || strings.Contains(got, "hw_physical_disk_size") {
		t.Errorf("a value that no hardware has was sent:\n%.500s", got)
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct{ tool, file, said, want string }{
		{"storcli64", "call_show_all_J_nolog", `{"Controllers":[{"Command Status":{"Status":"Failure","Description":"No Controller found"}}]}`, "finds no controller; without root"},
		{"storcli64", "call_show_all_J_nolog", `{"Controllers":[{"Command Status":{"Status":"Failure","Description":"Controller 0 is in a fault state"}}]}`, "it answers: Controller 0 is in a fault state"},
		{"storcli64", "call_show_all_J_nolog", "You must be root to run this", "it refuses: You must be root to run this; docs/probes/raid.md has the rule for sudo"},
		{"storcli64", "call_show_all_J_nolog", `{"Controllers":"x"}`, "no list of controllers"},
		{"ssacli", "ctrl_all_show_config_detail", "Error: You need to have administrator rights to continue.", "it refuses"},
		{"ssacli", "ctrl_all_show_config_detail", "Error: No controllers detected. Possible causes: no controller", "finds no controller"},
		{"arcconf", "getconfig_1", "Controllers found: 0\nCommand completed successfully.\n", "finds no controller"},
		{"arcconf", "getconfig_1", "Permission denied", "it refuses"},
		{"sas3ircu", "list", "SAS3IRCU: MPTLib2 Error 1\n", "finds no controller"},
		{"sas3ircu", "list", "nonsense", "it answers: nonsense"},
	} {
		dir, p := machine(t, c.tool)
		put(t, dir, filepath.Join(c.tool, c.file), c.said)
		put(t, dir, "status", "1")
		if got, err := round(t, p); err == nil || !strings.Contains(err.Error(), c.want) || got != "" {
			t.Errorf("%s said %q: %v\n%.300s", c.tool, c.said, err, got)
		}
	}
}

// TestTwoPrograms: a controller that storcli and perccli know counts once; the disks of another program are added.
func TestTwoPrograms(t *testing.T) {
	_, p := machine(t, "storcli64")
	once, err := round(t, p)
	if err != nil {
		t.Fatal(err)
	}
	p.find = func() []string { return []string{"/opt/perccli64", "/opt/storcli64", "/opt/ssacli"} }
	p.program = func(_ context.Context, args ...string) ([]byte, error) {
		dir := strings.NewReplacer("perccli64", "storcli64").Replace(filepath.Base(args[0]))
		return os.ReadFile(filepath.Join("testdata", dir, strings.ReplaceAll(strings.Join(args[1:], "_"), "/", "")))
	}
	got, err := round(t, p)
	if want := strings.Count(once, "\n") + strings.Count(read(t, "testdata/ssacli.prom"), "\n"); err != nil || strings.Count(got, "\n") != want {
		t.Errorf("%v: %d series, want %d", err, strings.Count(got, "\n"), want)
	}
}

func TestConfig(t *testing.T) {
	err := (&Config{Command: []string{"sudo", "/opt/storcli2"}, ReadTimeout: -1}).Validate()
	for _, want := range []string{`command: "sudo" is not an absolute path`, `"/opt/storcli2" is not a known program`, "read_timeout: "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}
}

// A recording read elsewhere gives the same series; redacted, the same but for names and serial numbers.
func TestReplay(t *testing.T) {
	for _, tool := range tools {
		_, p := machine(t, tool)
		want := tapetest.Collect(t, p)
		for _, keep := range [][]string{tape.Kinds(), nil} {
			taped := tape.New("raid")
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
				t.Errorf("%s, kept %q: %d series, want %d\n%s", tool, keep, len(got), len(want), cmp.Diff(want, got))
			}
			for _, secret := range []string{"SK00000001", "WAE00001", "5000C500A1B2C3D4", "PDNLH0BRH00001", "CZ30000001", "WAE00011", "5A0000001AC", "WAE00021", "WAE00031", "5000c500a1b2c6d7"} {
				if bare && strings.Contains(text, secret) {
					t.Errorf("%s: %s is in the recording", tool, secret)
				}
			}
			if strings.Contains(text, "00 00 06 12 8b") || strings.Contains(text, "Partition Number") {
				t.Errorf("%s: private data is in the recording", tool)
			}
		}
	}
}

// fuzzed checks what a parser made of anything.
func fuzzed(t *testing.T, all ...controller) {
	t.Helper()
	r := probes.NewRound(0)
	for _, c := range distinct(all, map[string]bool{}) {
		for i := range c {
			if c[i].ID == "" {
				t.Errorf("no ID: %+v", c[i])
			}
			c[i].AddTo(r)
		}
	}
	for _, s := range r.Samples() {
		if len(s.Labels)%2 != 0 || math.IsNaN(s.Value) || math.IsInf(s.Value, 0) {
			t.Errorf("%+v", s)
		}
	}
}

func FuzzStorcli(f *testing.F) {
	first := []byte(read(f, "testdata/storcli64/call_show_all_J_nolog"))
	f.Add(first, []byte(read(f, "testdata/storcli64/calleallsall_show_all_J_nolog")))
	f.Add(first, []byte(read(f, "testdata/storcli64/callvall_show_all_J_nolog")))
	f.Add(first, []byte(read(f, "testdata/storcli64/call_show_patrolread_J_nolog")))
	f.Fuzz(func(t *testing.T, first, others []byte) {
		all, err := readStorcli(t.Context(), func(_ context.Context, args ...string) ([]byte, error) {
			if slices.Equal(args, askControllers) {
				return first, nil
			}
			return others, nil
		})
		if err == nil && len(all) == 0 && !bytes.Contains(bytes.ToLower(first), []byte("o controller")) {
			t.Error("neither a controller nor an error")
		}
		fuzzed(t, all...)
	})
}

func FuzzTexts(f *testing.F) {
	for _, name := range []string{"ssacli/ctrl_all_show_config_detail", "arcconf/getconfig_1", "arcconf/getstatus_1", "sas3ircu/0_display", "sas3ircu/0_status"} {
		f.Add(read(f, "testdata/"+name))
	}
	f.Fuzz(func(t *testing.T, text string) {
		fuzzed(t, parseSSA(text)...)
		arc, ircu := parseArcconf(text, 1), parseIRCU(text, "0", "0000:01:00.0")
		if len(arc) > 0 {
			arcTasks(arc, text)
		}
		ircuTasks(ircu, text)
		fuzzed(t, arc)
		fuzzed(t, ircu)
	})
}
