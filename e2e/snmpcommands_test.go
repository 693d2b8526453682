package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"hwsagent/probes/snmp/recording"
)

// TestSNMPCommands looks at a device without --auth, as a user does who has a new switch in front of them.
func TestSNMPCommands(t *testing.T) {
	t.Parallel()
	endToEnd(t)
	rec, _, err := recording.Parse(strings.NewReader(`1.3.6.1.2.1.1.1.0|4|A switch
1.3.6.1.2.1.1.2.0|6|1.3.6.1.4.1.99999.1
1.3.6.1.2.1.1.3.0|67|360000
1.3.6.1.2.1.1.5.0|4|sw1.example
1.3.6.1.2.1.47.1.1.1.1.7.1|4|Inlet
1.3.6.1.2.1.99.1.1.1.1.1|2|8
1.3.6.1.2.1.99.1.1.1.2.1|2|9
1.3.6.1.2.1.99.1.1.1.3.1|2|1
1.3.6.1.2.1.99.1.1.1.4.1|2|235
1.3.6.1.2.1.99.1.1.1.5.1|2|1
`))
	if err != nil {
		t.Fatal(err)
	}
	device, err := recording.Serve(rec)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := device.Close(); err != nil {
			t.Error(err)
		}
	}()
	_, port, err := net.SplitHostPort(device.Addr())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "switch.snmprec")
	entry := fmt.Sprintf("{type: snmp, target: %q}", device.Addr())
	for _, c := range []struct {
		args []string
		says []string
	}{
		{[]string{"snmp", "walk", device.Addr(), "1.3.6.1.2.1.1"}, []string{"sysDescr", "A switch"}},
		{[]string{"record", entry, file}, []string{"10"}},
		{[]string{"snmp", "test", file}, []string{"hardware"}},
		{[]string{"inventory", entry}, []string{"Inlet", "23.5"}},
		{[]string{"snmp", "discover", "127.0.0.1/32", "--port", port}, []string{"type: snmp", "127.0.0.1:" + port}},
	} {
		said, err := exec.Command(binary(t), c.args...).CombinedOutput()
		if err != nil {
			t.Errorf("hwsagent %s: %v\n%s", strings.Join(c.args, " "), err, said)
		}
		for _, want := range c.says {
			if !strings.Contains(string(said), want) {
				t.Errorf("hwsagent %s does not say %q:\n%s", strings.Join(c.args, " "), want, said)
			}
		}
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the recording: %v, %v", info, err)
	}
}
