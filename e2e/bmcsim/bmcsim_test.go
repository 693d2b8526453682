package bmcsim

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start runs a BMC for the time of a test.
func start(t *testing.T, f Fault) *BMC {
	t.Helper()
	b, err := Listen("127.0.0.1:0", NewMachine("watcher", "watch-pass"), f)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(b.Run)
	t.Cleanup(func() { b.Close(); wg.Wait() })
	return b
}

// patience is for ipmitool: of a BMC that does not answer it would wait for minutes.
const patience = 20 * time.Second

// ipmitool is Debian's, which talks to the BMC; without it the test is skipped by name.
func ipmitool(t *testing.T, b *BMC, patience time.Duration, suite int, password string, args ...string) (string, error) {
	t.Helper()
	path, err := exec.LookPath("ipmitool")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("needs ipmitool, and this is CI: .ci/run must install it")
		}
		t.Skip("needs ipmitool (Debian: apt-get install ipmitool)")
	}
	host, port, err := net.SplitHostPort(b.Address())
	if err != nil {
		t.Fatal(err)
	}
	all := append([]string{"-I", "lanplus", "-C", strconv.Itoa(suite), "-H", host, "-p", port, "-U", "watcher", "-P", password, "-L", "USER", "-N", "1", "-R", "1"}, args...)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, all...).CombinedOutput()
	return string(out), err
}

// TestIpmitoolReads: another implementation logs in with both cipher suites, and reads each sensor, inventory and event as the machine
// has it.
func TestIpmitoolReads(t *testing.T) {
	b := start(t, Well)
	for _, suite := range []int{17, 3} {
		t.Run(fmt.Sprint("suite ", suite), func(t *testing.T) {
			out, err := ipmitool(t, b, patience, suite, "watch-pass", "sdr", "elist", "all")
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			for i, s := range b.machine.Sensors {
				value := ""
				if s.Unit != 0 {
					v := float64(s.M * int(s.Raw))
					for range -s.Exponent {
						v /= 10
					}
					value = strconv.FormatFloat(v, 'f', -1, 64)
				}
				if !regexp.MustCompile(fmt.Sprintf(`(?m)^%s +\| %02Xh \| ok +\| +%d\.%d \| %s0*\b`, s.Name, i+1, s.Entity, s.Instance, regexp.QuoteMeta(value))).MatchString(out) {
					t.Errorf("sensor %d, %q, %s, is not there", i+1, s.Name, value)
				}
			}
			if t.Failed() {
				t.Log(out)
			}
		})
	}
	out, err := ipmitool(t, b, patience, 17, "watch-pass", "fru", "print")
	if n := strings.Count(out, "Product Serial"); err != nil || n != len(b.machine.Parts) || !strings.Contains(out, "SN000700") || !strings.Contains(out, "Module 32 GiB") {
		t.Errorf("%d inventories, want %d: %v\n%s", n, len(b.machine.Parts), err, out)
	}
	if out, err := ipmitool(t, b, patience, 17, "watch-pass", "sel", "list"); err != nil || strings.Count(out, "\n") != len(b.machine.Events) {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := ipmitool(t, b, patience, 17, "watch-pass", "dcmi", "power", "reading"); err != nil || !regexp.MustCompile(`Instantaneous power reading: +314 Watts`).MatchString(out) {
		t.Errorf("%v\n%s", err, out)
	}
	if c := b.Counts(); c.Opened != c.Closed || c.Opened == 0 || c.Most != 1 || len(c.Begun) != c.Opened {
		t.Errorf("%+v", c)
	}
	if out, err := ipmitool(t, b, patience, 17, "not-this-one", "chassis", "status"); err == nil {
		t.Errorf("a wrong password is taken:\n%s", out)
	}
}

// TestIpmitoolFaults: doubled and stray packets are endured by the other side, silence is not, and each fault fires.
func TestIpmitoolFaults(t *testing.T) {
	for f, endured := range map[Fault]bool{Silent: false, Stops: false, Late: false, Twice: true, Stray: true} {
		t.Run(fmt.Sprint("fault ", f), func(t *testing.T) {
			t.Parallel()
			b, wait := start(t, f), 3*time.Second
			if endured {
				wait = patience
			}
			out, err := ipmitool(t, b, wait, 17, "watch-pass", "sdr", "elist", "full")
			if (err == nil && strings.Contains(out, "PS2 Input Power")) != endured {
				t.Errorf("%v\n%s", err, out)
			}
			if b.Counts().Faults == 0 {
				t.Error("the fault did not fire")
			}
		})
	}
}
