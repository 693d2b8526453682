package e2e

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"hwsagent/agent/demo/receiver"
	"hwsagent/internal/tools/tier"
)

// TestPrometheusReceivesHost is the thin slice: host probe, log, remote write, PromQL.
func TestPrometheusReceivesHost(t *testing.T) {
	t.Parallel()
	p := startPrometheus(t, "")
	startAgent(t, `
global: {scrape_interval: 1s, scrape_timeout: 1s, external_labels: {site: lab}}
wal: {min_free_bytes: 1MiB}
probes:
  - {name: host, type: host}
remote_write:
`+entry("prometheus", p.writeURL()))
	p.wait(20*time.Second, `node_memory_MemTotal_bytes{site="lab",job="host"}`)
	memory, _ := p.value("node_memory_MemTotal_bytes")
	if want := memTotal(t); memory != want {
		t.Errorf("node_memory_MemTotal_bytes is %v, /proc/meminfo says %v", memory, want)
	}
	if v, ok := p.value(`up{job="host"}`); !ok || v != 1 {
		t.Errorf(`up{job="host"} is %v (%t)`, v, ok)
	}
	if v, ok := p.value(`count(node_cpu_seconds_total{mode="idle"})`); !ok || v < 1 {
		t.Errorf("there is no idle time of a CPU: %v", v)
	}
	if v, ok := p.value(`count({__name__=~"node_.*"})`); !ok || v < 100 {
		t.Errorf("only %v series of the host", v)
	}
	// The agent's own metrics go the same way, unasked, once a minute.
	p.wait(70*time.Second, `{__name__=~"hwsagent_wal_.*",job="hwsagent"}`)
}

func memTotal(t *testing.T) float64 {
	t.Helper()
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		t.Fatal(err)
	}
	f := strings.Fields(strings.SplitN(string(b), "\n", 2)[0])
	kib, err := strconv.ParseFloat(f[1], 64)
	if err != nil || f[0] != "MemTotal:" {
		t.Fatalf("/proc/meminfo begins with %v: %v", f, err)
	}
	return kib * 1024
}

// readmeBlock returns the code block of README.md after the marker <!-- e2e: name -->.
func readmeBlock(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, ok := strings.Cut(string(b), "<!-- e2e: "+name+" -->\n```yaml\n")
	block, _, ended := strings.Cut(after, "\n```")
	if !ok || !ended {
		t.Fatalf("README.md has no block marked %q", name)
	}
	return block + "\n"
}

// TestReadmeConfig runs the README's first config, word for word except hosts, ports and
// paths, against nginx before Prometheus and a real SNMP device.
func TestReadmeConfig(t *testing.T) {
	t.Parallel()
	prom, prod, dev, ascent := startPrometheus(t, ""), startPrometheus(t, ""), startPrometheus(t, ""), startPrometheus(t, "")
	f := startFront(t, backends{plain: prom, receive: ascent, tenant: [2]*prometheus{prod, dev}})
	device := startSnmpd(t)
	etc := t.TempDir()
	writeFile(t, filepath.Join(etc, "opstrace-prod.token"), f.tenantToken[0]+"\n")
	writeFile(t, filepath.Join(etc, "opstrace-dev.token"), f.tenantToken[1]+"\n")
	config := readmeBlock(t, "config")
	for _, change := range [][2]string{
		{"192.0.2.7:161", device},
		{"http://prometheus.example:9090/", f.plain + "/"},
		{"https://cortex.prod.opstrace.example/", f.push + "/"},
		{"https://cortex.dev.opstrace.example/", f.push + "/"},
		{"https://ascent.example/", f.mtls + "/"},
		{"/etc/hwsagent/ascent-ca.pem", f.pki.CAFile},
		{"/etc/hwsagent/ascent.pem", f.pki.CertFile},
		{"/etc/hwsagent/ascent.key", f.pki.KeyFile},
		{"/etc/hwsagent/", etc + "/"},
	} {
		if !strings.Contains(config, change[0]) {
			t.Fatalf("the README's config has no %s any more", change[0])
		}
		config = strings.ReplaceAll(config, change[0], change[1])
	}
	// The tenants' endpoints have certificates of public authorities; here the test's own
	// authority stands for them.
	a := newAgent(t, config)
	a.env = append(a.env, "SSL_CERT_FILE="+f.pki.CAFile)
	t.Cleanup(func() {
		if a.cmd != nil {
			a.kill()
		}
		if t.Failed() {
			t.Logf("the agent said:\n%s", a.tail(60))
		}
	})
	check := startProcess(t, binary(t), []string{"check", "--config.file", a.config, "--storage.path", a.storage}, a.env)
	<-check.done
	if code := check.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("check of the README's config: exit code %d\n%s", code, check.logText())
	}
	a.run()
	for name, p := range map[string]*prometheus{"prometheus": prom, "opstrace-prod": prod, "opstrace-dev": dev, "ascent": ascent} {
		p.wait(40*time.Second, `node_memory_MemTotal_bytes{site="fra1",job="host"}`)
		p.wait(90*time.Second, `ifHCInOctets{job="core-switch",instance="`+device+`"}`)
		if tg := a.target(name); tg.State == "held" || tg.Ledger.Lost > 0 {
			t.Errorf("target %s is %s (%s), ledger %+v", name, tg.State, tg.Why, tg.Ledger)
		}
	}
}

// TestWrongToken gives one tenant the wrong token: it is held, the other is not
// touched, and nothing is lost once the token is right.
func TestWrongToken(t *testing.T) {
	t.Parallel()
	prod, dev := startPrometheus(t, ""), startPrometheus(t, "")
	f := startFront(t, backends{tenant: [2]*prometheus{prod, dev}})
	dir := t.TempDir()
	tokens := [2]string{filepath.Join(dir, "prod"), filepath.Join(dir, "dev")}
	writeFile(t, tokens[0], "wrong")
	writeFile(t, tokens[1], f.tenantToken[1])
	tls := "    tls_config: {ca_file: " + f.pki.CAFile + "}\n"
	l := newLoad(t, 20, 200*time.Millisecond,
		entry("prod", f.push+"/api/v1/push", tls, "    bearer_token_file: "+tokens[0]+"\n")+
			entry("dev", f.push+"/api/v1/push", tls, "    bearer_token_file: "+tokens[1]+"\n"), receiver.NewOracle()).begin()
	eventually(t, 20*time.Second, func() string {
		tg := l.target("prod")
		if tg.State != "held" || !strings.Contains(tg.Why+tg.LastError, "401") {
			return fmt.Sprintf("target prod is %s (%s %s), want held because of the 401", tg.State, tg.Why, tg.LastError)
		}
		return ""
	})
	dev.wait(20*time.Second, receiver.CanaryName)
	if r := prod.query(receiver.CanaryName); len(r) > 0 {
		t.Errorf("the tenant with the wrong token has data: %v", r)
	}
	l.acked(10)
	writeFile(t, tokens[0], f.tenantToken[0])
	eventually(t, 15*time.Second, func() string {
		if len(prod.query(receiver.CanaryName)) == 0 {
			return "nothing arrives with the right token"
		}
		return ""
	})
	l.reload(l.text(false))
	for name, p := range map[string]*prometheus{"prod": prod, "dev": dev} {
		if tg := l.drained(30*time.Second, name); tg.Ledger.Lost > 0 {
			t.Errorf("%s: %+v", name, tg.Ledger)
		}
		checkStored(t, p, l)
	}
}

// checkStored compares what a Prometheus has of the canaries with what the log
// acknowledged, number by number.
func checkStored(t *testing.T, p *prometheus, l *load) {
	t.Helper()
	acked := l.journal().Acked
	series := p.query(receiver.CanaryName + "[1h]")
	if len(series) != l.series {
		t.Errorf("%d canary series, want %d", len(series), l.series)
	}
	for _, s := range series {
		var got []uint64
		for _, v := range s.Values {
			if !math.IsNaN(v.V) {
				got = append(got, uint64(v.V))
			}
		}
		if !slices.IsSorted(got) {
			t.Errorf("series %s is not in order: %v", s.Metric["series"], got)
		}
		var missing []uint64
		for _, n := range acked {
			if _, ok := slices.BinarySearch(got, n); !ok {
				missing = append(missing, n)
			}
		}
		if len(missing) > 0 {
			t.Fatalf("series %s lacks %d of %d acknowledged samples: %v", s.Metric["series"], len(missing), len(acked), missing)
		}
	}
}

// TestInsecureSkipVerify writes to an endpoint with a self-signed certificate.
func TestInsecureSkipVerify(t *testing.T) {
	t.Parallel()
	p := startPrometheus(t, "")
	f := startFront(t, backends{self: p})
	l := newLoad(t, 5, 200*time.Millisecond,
		entry("trusting", f.self+"/api/v1/write", "    tls_config: {insecure_skip_verify: true}\n")+
			entry("careful", f.self+"/api/v1/write"), receiver.NewOracle()).begin()
	p.wait(20*time.Second, receiver.CanaryName)
	eventually(t, 20*time.Second, func() string {
		if tg := l.target("careful"); tg.State == "ok" || !strings.Contains(tg.Why+tg.LastError, "certificate") {
			return fmt.Sprintf("without insecure_skip_verify the target is %s (%s %s)", tg.State, tg.Why, tg.LastError)
		}
		return ""
	})
	l.reload(l.text(false))
	l.drained(20*time.Second, "trusting")
	checkStored(t, p, l)
}

// TestPlainURLWithoutPath uses an entry as people have it in the wild: no path, large
// batches, a long deadline. Batches fill before the deadline.
func TestPlainURLWithoutPath(t *testing.T) {
	t.Parallel()
	p := startPrometheus(t, "")
	f := startFront(t, backends{plain: p})
	l := newLoad(t, 1000, 200*time.Millisecond, fmt.Sprintf(`
  - url: %s
    queue_config: {capacity: 10000, max_samples_per_send: 5000, batch_send_deadline: 60s}
`, f.plain), receiver.NewOracle()).begin()
	p.wait(20*time.Second, receiver.CanaryName)
	l.acked(20)
	l.reload(l.text(false))
	name := l.status().Targets[0].Name
	if !strings.HasPrefix(f.plain, "http://"+name) {
		t.Errorf("the target without a name is called %q", name)
	}
	l.drained(75*time.Second, name)
	checkStored(t, p, l)
}

// TestSNMP reads a real device with v2c and v3 and finds it in Prometheus.
func TestSNMP(t *testing.T) {
	t.Parallel()
	p := startPrometheus(t, "")
	device := startSnmpd(t)
	startAgent(t, fmt.Sprintf(`
global: {scrape_interval: 2s, scrape_timeout: 2s}
wal: {min_free_bytes: 1MiB}
probes:
  - {name: v2c, type: snmp, target: %[1]q, auth: {version: 2, community: public}, modules: [system, if_mib, host_resources, entity_sensor, ucd_lmsensors]}
  - {name: v3, type: snmp, target: %[1]q, modules: [system, entity_sensor], auth: {version: 3, username: privuser, security_level: authPriv, auth_protocol: SHA256, password: authpass1234, priv_protocol: AES, priv_password: privpass1234}}
  - {name: v3strong, type: snmp, target: %[1]q, modules: [system], auth: {version: 3, username: priv512, security_level: authPriv, auth_protocol: SHA512, password: authpass1234, priv_protocol: AES256, priv_password: privpass1234}}
  - {name: wrong, type: snmp, target: %[1]q, modules: [system], auth: {version: 3, username: privuser, security_level: authPriv, auth_protocol: SHA256, password: wrongwrong, priv_protocol: AES, priv_password: privpass1234}}
remote_write:
%s`, device, entry("prometheus", p.writeURL())))
	for _, expr := range []string{
		`sysUpTime{job="v2c"} > 0`,
		`sysUpTime{job="v3"} > 0`,
		`sysUpTime{job="v3strong"} > 0`,
		`up{job="v2c"} == 1`, `up{job="v3"} == 1`, `up{job="v3strong"} == 1`, `up{job="wrong"} == 0`,
		`ifHCInOctets{job="v2c",ifDescr="lo"}`,
		`ifOperStatus{job="v2c",ifDescr="lo"} == 1`,
		`hrSystemUptime{job="v2c"} > 0`,
		`entPhySensorValue{job="v2c",entPhysicalName="Inlet"} == 235`,
		`entPhySensorValue{job="v3",entPhysicalName="Inlet"} == 235`,
		`lmTempSensorsValue{job="v2c",lmTempSensorsDevice="CPU Temp"} == 45000`,
		`lmFanSensorsValue{job="v2c",lmFanSensorsDevice="fan1"} == 1200`,
	} {
		eventually(t, 30*time.Second, func() string {
			if len(p.query(expr)) == 0 {
				return "prometheus has no answer to " + expr
			}
			return ""
		})
	}
}

// TestKillPrometheusWithoutOOO kills the agent while it writes to a Prometheus without an out-of-order window, which
// refuses a whole request for one late sample: repeated samples must not cost a fresh sample.
func TestKillPrometheusWithoutOOO(t *testing.T) {
	t.Parallel()
	rnd := seeded(t)
	p := startPrometheus(t, "")
	f := startFront(t, backends{plain: p}) // its log tells what was refused
	l := newLoad(t, tier.Of(200, 1000), 100*time.Millisecond, entry("prometheus", f.plain+"/api/v1/write"), receiver.NewOracle()).begin()
	l.killed("prometheus", rnd)
	checkStored(t, p, l)
	log, err := os.ReadFile(f.accessLog)
	if err != nil {
		t.Fatal(err)
	}
	refused := uint64(strings.Count("\n"+string(log), "\n400 "))
	t.Logf("%d requests were refused", refused)
	if refused > kills*64 {
		t.Errorf("%d requests were refused after %d kills", refused, kills)
	}
}

// TestKillVictoriaMetrics kills the agent while it writes to a VictoriaMetrics, which takes old samples: a window may hold several
// of a series.
func TestKillVictoriaMetrics(t *testing.T) {
	t.Parallel()
	rnd := seeded(t)
	v := startVictoria(t, backend{})
	l := newLoad(t, tier.Of(200, 1000), 100*time.Millisecond, entry("victoria", v.write), receiver.NewOracle()).begin()
	l.killed("victoria", rnd)
	acked := l.journal().Acked
	stored := 0
	for series, times := range v.read() {
		if !strings.HasPrefix(series, "{__name__=\""+receiver.CanaryName+"\"") {
			continue
		}
		stored++
		var got []uint64
		for _, values := range times {
			for _, v := range values {
				if n, err := strconv.ParseUint(v, 10, 64); err == nil {
					got = append(got, n)
				}
			}
		}
		slices.Sort(got)
		for _, n := range acked {
			if _, ok := slices.BinarySearch(got, n); !ok {
				t.Fatalf("series %s lacks the acknowledged sample %d", series, n)
			}
		}
	}
	if stored != l.series {
		t.Errorf("%d canary series, want %d", stored, l.series)
	}
}

const kills = 5

// killed kills the agent five times while the target takes samples, and lets it deliver the rest. No sample is lost, and none
// ends as unconfirmed.
func (l *load) killed(name string, rnd *rand.Rand) {
	l.t.Helper()
	for range kills {
		before := l.target(name).Ledger.Delivered
		eventually(l.t, 30*time.Second, func() string {
			if got := l.target(name).Ledger.Delivered; got <= before {
				return fmt.Sprintf("%d samples have arrived, none since the start", got)
			}
			return ""
		})
		time.Sleep(time.Duration(rnd.IntN(1500)) * time.Millisecond) // the fault's own schedule
		l.kill()
		l.run()
	}
	l.acked(10)
	l.reload(l.text(false))
	tg := l.drained(60*time.Second, name)
	l.t.Logf("ledger: %+v", tg.Ledger)
	if tg.Ledger.Lost > 0 || tg.Ledger.Delivered == 0 {
		l.t.Errorf("want all samples delivered: %+v", tg.Ledger) // the unconfirmed count as lost here
	}
}
