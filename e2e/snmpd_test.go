package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// startSnmpd starts Debian's snmpd, a real SNMP agent, with a v2c community, three v3
// users and some hardware of the test's making. It returns host:port.
func startSnmpd(t *testing.T) string {
	t.Helper()
	program := needs(t, "snmpd")
	dir := t.TempDir()
	addr := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	conf := writeFile(t, filepath.Join(dir, "snmpd.conf"), strings.ReplaceAll(snmpdConf, "ADDRESS", addr))
	p := startProcess(t, program, []string{"-f", "-Lo", "-C", "-c", conf, "-p", filepath.Join(dir, "pid")},
		[]string{"SNMP_PERSISTENT_DIR=" + filepath.Join(dir, "var"), "MIBS="})
	eventually(t, 15*time.Second, func() string {
		if gone := p.ended(); gone != "" {
			t.Fatal(gone)
		}
		if !strings.Contains(p.logText(), "NET-SNMP version") {
			return "snmpd does not say that it is up"
		}
		return ""
	})
	return addr
}

// The engine ID is fixed, so a restart of snmpd is a restart of the same device.
const snmpdConf = `
agentAddress udp:ADDRESS
exactEngineID 0x80001f88036877736167656e74
rocommunity public 127.0.0.1
createUser privuser SHA-256 authpass1234 AES privpass1234
createUser priv512 SHA-512 authpass1234 AES-256 privpass1234
createUser authuser SHA authpass1234
rouser privuser authpriv
rouser priv512 authpriv
rouser authuser authnopriv
sysName e2e-device
sysLocation rack 4
# LM-SENSORS-MIB: one temperature in millidegrees, one fan.
override 1.3.6.1.4.1.2021.13.16.2.1.1.1 integer 1
override 1.3.6.1.4.1.2021.13.16.2.1.2.1 octet_str "CPU Temp"
override 1.3.6.1.4.1.2021.13.16.2.1.3.1 uinteger 45000
override 1.3.6.1.4.1.2021.13.16.3.1.1.1 integer 1
override 1.3.6.1.4.1.2021.13.16.3.1.2.1 octet_str "fan1"
override 1.3.6.1.4.1.2021.13.16.3.1.3.1 uinteger 1200
# ENTITY-SENSOR-MIB: an inlet of 23.5 degrees Celsius.
override 1.3.6.1.2.1.47.1.1.1.1.7.1001 octet_str "Inlet"
override 1.3.6.1.2.1.99.1.1.1.1.1001 integer 8
override 1.3.6.1.2.1.99.1.1.1.2.1001 integer 9
override 1.3.6.1.2.1.99.1.1.1.3.1001 integer 1
override 1.3.6.1.2.1.99.1.1.1.4.1001 integer 235
override 1.3.6.1.2.1.99.1.1.1.5.1001 integer 1
override 1.3.6.1.2.1.99.1.1.1.6.1001 octet_str "degrees"
`
