//go:build linux

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"hwsagent/internal/tools/tier"
)

// packages are a deb and an rpm of one version.
type packages struct{ deb, rpm string }

// makePackages returns the packages of a version, with everything that goes into them.
func makePackages(t *testing.T, version string) packages {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command(needs(t, "make"), "-C", "..", "--no-print-directory", "packages", "VERSION="+version,
		"BIN="+dir+"/bin", "STAGE="+dir+"/stage", "DIST="+dir+"/dist")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("make packages: %v\n%s", err, out)
	}
	only := func(pattern string) string {
		found, err := filepath.Glob(filepath.Join(dir, "dist", pattern))
		if err != nil || len(found) != 1 {
			t.Fatalf("%s: %q, %v", pattern, found, err)
		}
		return found[0]
	}
	return packages{only("*.deb"), only("*.rpm")}
}

// markedBlocks returns the code blocks in a language of a page after each marker <!-- e2e: name -->.
func markedBlocks(t *testing.T, page, name, language string) []string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for _, m := range regexp.MustCompile("(?s)<!-- e2e: "+name+" -->\n```"+language+"\n(.*?)\n```").FindAllSubmatch(text, -1) {
		blocks = append(blocks, string(m[1]))
	}
	return blocks
}

// TestPackages installs, upgrades, removes and purges the packages on a machine with a systemd and a
// Prometheus of its own. The installation is the tutorial's, word by word.
func TestPackages(t *testing.T) {
	t.Parallel()
	needs(t, "rpm")
	needs(t, "prometheus")
	tier.OnlyNightly(t, "builds three packages with nfpm, which takes minutes to compile")
	m := startMachine(t)
	one, again, two := makePackages(t, "v1.0.0"), makePackages(t, "v1.0.0"), makePackages(t, "v2.0.0")
	sameBytes(t, one.deb, again.deb)
	sameBytes(t, one.rpm, again.rpm)
	linksResolve(t, one.deb)

	m.put(one.deb)
	m.tutorial()
	m.units()
	m.sandboxed()
	m.reloads()
	m.upgrades(two.deb)
	m.removes(two.deb)
	m.rpm(one.rpm, two.rpm)
}

func sameBytes(t *testing.T, a, b string) {
	t.Helper()
	first, err := os.ReadFile(a)
	if err != nil {
		t.Fatal(err)
	}
	second, err := os.ReadFile(b)
	if err != nil || !bytes.Equal(first, second) {
		t.Errorf("%s made twice differs: %v", filepath.Base(a), err)
	}
}

// linksResolve checks that the pages of a package refer to files of the package.
func linksResolve(t *testing.T, deb string) {
	t.Helper()
	root := t.TempDir()
	if out, err := exec.Command("dpkg-deb", "-x", deb, root).CombinedOutput(); err != nil {
		t.Fatalf("dpkg-deb: %v\n%s", err, out)
	}
	link, checked := regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`), 0 // none with a scheme
	err := filepath.WalkDir(filepath.Join(root, "usr/share/doc/hwsagent"), func(path string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range link.FindAllSubmatch(text, -1) {
			checked++
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), string(m[1]))); err != nil {
				t.Errorf("the package has %v", err)
			}
		}
		return err
	})
	if err != nil || checked < 100 {
		t.Errorf("%d links of the package's pages: %v", checked, err)
	}
}

// tutorial follows docs/install.md until data is in Prometheus.
func (m *machine) tutorial() {
	m.t.Helper()
	blocks := markedBlocks(m.t, "../docs/install.md", "tutorial", "sh")
	if len(blocks) != 6 {
		m.t.Fatalf("the tutorial has %d blocks, want 6", len(blocks))
	}
	began, out := time.Now(), ""
	for i, block := range blocks {
		out = m.do("set -e\n" + block)
		if want := []string{"hwsagent 1.0.0", "Ready", "", "1 target; with 1 file of conf.d", "", "All data"}[i]; !strings.Contains(strings.ReplaceAll(out, "hwsagent v", "hwsagent "), want) {
			m.t.Errorf("block %d of the tutorial lacks %q:\n%s", i+1, want, out)
		}
	}
	if !regexp.MustCompile(`node_memory_MemTotal_bytes\{.*job="host".*\} => [1-9]`).MatchString(out) {
		m.t.Fatalf("Prometheus has no data at the end of the tutorial:\n%s", out)
	}
	took := time.Since(began)
	m.t.Logf("from apt-get install to data in Prometheus: %s", took.Round(time.Second))
	if took > 5*time.Minute {
		m.t.Errorf("the tutorial took %s, more than five minutes", took)
	}
	for file, want := range map[string]string{
		"/etc/hwsagent": "750 root hwsagent", "/etc/hwsagent/conf.d": "750 root hwsagent", "/etc/hwsagent/agent.yaml": "640 root hwsagent",
		"/var/lib/hwsagent": "700 hwsagent hwsagent", "/usr/bin/hwsagent": "755 root root",
	} {
		if got := strings.TrimSpace(m.do("stat -c '%a %U %G' " + file)); got != want {
			m.t.Errorf("%s is %s, want %s", file, got, want)
		}
	}
	// Debian's images for containers leave manual pages out; the package has them.
	list := m.do("dpkg-deb -c hwsagent_*.deb")
	for _, file := range []string{"man/man1/hwsagent-targets-test.1.gz", "hwsagent/mixin/rules.yaml", "hwsagent/mixin/tests.yaml", "hwsagent/mixin/hardware/rules.yaml", "hwsagent/mixin/hardware/sums.yaml", "hwsagent/mixin/hardware/sums_test.yaml", "doc/hwsagent/docs/hardware.md", "doc/hwsagent/docs/snmp-library.md", "doc/hwsagent/docs/probes/smart.md", "hwsagent/mixin/dashboards/fleet.json"} {
		if !strings.Contains(list, "/usr/share/"+file) {
			m.t.Errorf("the package has no /usr/share/%s:\n%s", file, list)
		}
	}
	m.do(`bash -c '. /usr/share/bash-completion/bash_completion; . /usr/share/bash-completion/completions/hwsagent' 2>/dev/null || bash -n /usr/share/bash-completion/completions/hwsagent`)
}

// units has the service, in its sandbox, ask the machine's systemd for its units, and finds them in Prometheus.
func (m *machine) units() {
	m.t.Helper()
	const file = "/etc/hwsagent/conf.d/units.yaml"
	m.do(`set -e
		systemctl start dbus.socket
		echo 'probes: [{name: units, type: host, interval: 2s, timeout: 2s, collectors: [systemd]}]' >` + file + `
		chgrp hwsagent ` + file + `
		chmod 640 ` + file + `
		systemctl reload hwsagent`)
	for _, query := range []string{
		`node_systemd_unit_state{job="units",name="hwsagent.service",state="active",type="notify"} == 1`,
		`node_systemd_service_restart_total{job="units",name="hwsagent.service"} == 0`,
		`time() - node_systemd_unit_start_time_seconds{job="units",name="hwsagent.service"} < 600`,
		`node_systemd_version{job="units"} > 200`,
		`node_systemd_units{job="units",state="active"} > 5`,
	} {
		eventually(m.t, 30*time.Second, func() string {
			if out := m.do("promtool query instant http://127.0.0.1:9090 '" + query + "'"); !strings.Contains(out, "=>") {
				return fmt.Sprintf("%s is not in Prometheus: %s\n%s", query, out, m.do("hwsagent status || true"))
			}
			return ""
		})
	}
	m.do("rm " + file + " && systemctl reload hwsagent")
}

// show returns a property of the service, as systemd has it.
func (m *machine) show(property string) string {
	m.t.Helper()
	return strings.TrimSpace(m.do("systemctl show --value -p " + property + " hwsagent"))
}

// sandboxed checks what systemd says of the unit and its drop-ins, and what it has heard of the agent.
func (m *machine) sandboxed() {
	m.t.Helper()
	const unit = "/lib/systemd/system/hwsagent.service"
	if out, code := m.try("systemd-analyze verify --man=no " + unit); code != 0 || strings.Contains(out, "hwsagent") {
		m.t.Errorf("systemd-analyze verify: exit code %d\n%s", code, out)
	}
	if out, code := m.try("systemd-analyze security --offline=yes --no-pager --threshold=16 " + unit); code != 0 {
		m.t.Errorf("the sandbox is weaker than 1.6:\n%s", out)
	}
	if status := m.show("StatusText"); !strings.Contains(status, "All data") {
		m.t.Errorf("systemd shows the status %q", status)
	}
	if got := m.show("Type") + " " + m.show("WatchdogUSec") + " " + m.show("NRestarts") + " " + m.show("User"); got != "notify 1min 0 hwsagent" {
		m.t.Errorf("the service is %s", got)
	}
	for _, dropin := range strings.Fields(m.do("ls /usr/share/hwsagent/systemd")) {
		out := m.do(`set -e
			mkdir -p /etc/systemd/system/hwsagent.service.d
			cp /usr/share/hwsagent/systemd/` + dropin + ` /etc/systemd/system/hwsagent.service.d/
			systemctl daemon-reload
			systemd-analyze verify --man=no hwsagent.service 2>&1
			systemctl restart hwsagent
			systemctl is-active hwsagent
			rm /etc/systemd/system/hwsagent.service.d/` + dropin + `
			systemctl daemon-reload`)
		if strings.Contains(out, dropin) {
			m.t.Errorf("%s: %s", dropin, out)
		}
	}
	m.credential()
}

// credential has systemd hand a token to the agent, which may not read the token's file itself.
func (m *machine) credential() {
	m.t.Helper()
	const dropin, config = "/etc/systemd/system/hwsagent.service.d/credential.conf", "/etc/hwsagent/conf.d/credential.yaml"
	m.do(`set -e
		mkdir -p -m 700 /etc/hwsagent/secrets
		(umask 077; echo token >/etc/hwsagent/secrets/prometheus.token)
		printf '[Service]\nLoadCredential=prometheus.token:/etc/hwsagent/secrets/prometheus.token\n' >` + dropin + `
		cat >` + config + ` <<'END'
remote_write:
  - name: credential
    url: http://127.0.0.1:9090/api/v1/write
    bearer_token_file: ${CREDENTIALS_DIRECTORY}/prometheus.token
    write_relabel_configs: [{target_label: by, replacement: credential}]
END
		chmod 644 ` + config + `
		systemctl daemon-reload
		systemctl restart hwsagent`)
	eventually(m.t, time.Minute, func() string {
		if up := m.query(`up{job="host",by="credential"}`); up != 1 {
			status, _ := m.try("hwsagent status")
			return fmt.Sprintf("with a token from systemd, up is %v, and the status\n%s", up, status)
		}
		return ""
	})
	m.do("rm " + dropin + " " + config + " && systemctl daemon-reload && systemctl restart hwsagent")
}

// reloads checks that a mistake fails the reload and stops nothing, and that a change is taken up.
func (m *machine) reloads() {
	m.t.Helper()
	pid := m.show("MainPID")
	m.do("printf 'probes:\\n  - {type: canry}\\n' >/etc/hwsagent/conf.d/canary.yaml; chmod 644 /etc/hwsagent/conf.d/canary.yaml")
	if out, code := m.try("systemctl reload hwsagent"); code == 0 {
		m.t.Errorf("a reload of a mistake succeeds: %s", out)
	}
	if log := m.do("journalctl -u hwsagent -o cat --no-pager"); !strings.Contains(log, "/etc/hwsagent/conf.d/canary.yaml:2:12") {
		m.t.Errorf("the journal does not show the mistake:\n%s", log)
	}
	m.do("sed -i 's/type: canry/name: canary, type: canary, interval: 1s, journal_file: \\/var\\/lib\\/hwsagent\\/canary.journal/' /etc/hwsagent/conf.d/canary.yaml && systemctl reload hwsagent")
	if now := m.show("MainPID"); now != pid || m.show("ActiveState") != "active" {
		m.t.Errorf("after reloads the process is %s, it was %s", now, pid)
	}
}

// query returns the value of an instant query to the machine's Prometheus, -1 if there is none, or no answer.
func (m *machine) query(expression string) float64 {
	m.t.Helper()
	out, _ := m.try("promtool query instant http://127.0.0.1:9090 '" + expression + "'")
	found := regexp.MustCompile(`=> ([0-9.e+]+) @`).FindStringSubmatch(out)
	if found == nil {
		return -1
	}
	v, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		m.t.Fatal(err)
	}
	return v
}

// upgrades installs a newer package while Prometheus is away and samples wait in the log. All of them arrive.
func (m *machine) upgrades(deb string) {
	m.t.Helper()
	m.put(deb)
	m.do("echo '# a change of mine' >>/etc/hwsagent/agent.yaml; systemctl stop prometheus; sleep 5")
	m.do("apt-get install -y ./" + filepath.Base(deb))
	if out := m.do("hwsagent status --json || true; tail -1 /etc/hwsagent/agent.yaml"); !strings.Contains(out, `"version": "v2.0.0"`) || !strings.Contains(out, "# a change of mine") {
		m.t.Errorf("after the upgrade: %s", out)
	}
	if restarts := m.show("NRestarts"); restarts != "0" {
		m.t.Errorf("systemd restarted the agent %s times by itself", restarts)
	}
	m.do("sleep 5; systemctl start prometheus")
	// The canary's numbers have no gap: pending and later samples all arrived.
	eventually(m.t, time.Minute, func() string {
		const canary = `hwsagent_canary{job="canary"}`
		n, first, last := m.query("count_over_time("+canary+"[1h])"), m.query("min_over_time("+canary+"[1h])"), m.query("max_over_time("+canary+"[1h])")
		if n < 12 || last-first+1 != n {
			return fmt.Sprintf("%v numbers from %v to %v have arrived", n, first, last)
		}
		return ""
	})
}

// removes checks that a removal keeps what is the user's, and that a purge keeps nothing.
func (m *machine) removes(deb string) {
	m.t.Helper()
	m.do("apt-get remove -y hwsagent")
	if out, code := m.try("ls /usr/bin/hwsagent /lib/systemd/system/hwsagent.service 2>/dev/null; pgrep -x hwsagent"); strings.TrimSpace(out) != "" || code == 0 {
		m.t.Errorf("after the removal there is %s", out)
	}
	m.do("set -e; ls /etc/hwsagent/agent.yaml /etc/hwsagent/conf.d/prometheus.yaml; ls -d /var/lib/hwsagent/wal; getent passwd hwsagent")
	before := m.query(`max_over_time(hwsagent_canary{job="canary"}[1h])`)
	m.do("apt-get install -y ./" + filepath.Base(deb) + " && systemctl enable --now hwsagent")
	eventually(m.t, 30*time.Second, func() string {
		if now := m.query(`max_over_time(hwsagent_canary{job="canary"}[1h])`); now <= before {
			return fmt.Sprintf("after a new installation the canary is still at %v", now)
		}
		return ""
	})
	m.do("apt-get purge -y hwsagent")
	left := m.do(`find /etc /usr/bin /usr/lib /usr/share /var/lib /run -xdev -path /var/lib/prometheus -prune -o -iname '*hwsagent*' -newer /run/booted -print; getent passwd hwsagent; getent group hwsagent; true`)
	if left = strings.TrimSpace(left); left != "" {
		m.t.Errorf("after the purge there is\n%s", left)
	}
}

// rpm installs, upgrades and removes the RPM package, on Debian and thus without its dependencies.
func (m *machine) rpm(one, two string) {
	m.t.Helper()
	m.put(one)
	m.put(two)
	m.do("rpm -i --nodeps " + filepath.Base(one) + " && systemctl enable --now hwsagent")
	if got := strings.TrimSpace(m.do("stat -c '%a %U %G' /etc/hwsagent/agent.yaml /var/lib/hwsagent | tr '\\n' ,")); got != "640 root hwsagent,700 hwsagent hwsagent," {
		m.t.Errorf("the files are %s", got)
	}
	m.do("echo '# a change of mine' >>/etc/hwsagent/agent.yaml; rpm -U --nodeps " + filepath.Base(two))
	if out := m.do("systemctl is-active hwsagent; hwsagent status --json || true; tail -1 /etc/hwsagent/agent.yaml"); !strings.HasPrefix(out, "active") || !strings.Contains(out, `"version": "v2.0.0"`) || !strings.Contains(out, "# a change of mine") {
		m.t.Errorf("after the upgrade: %s", out)
	}
	m.do("rpm -e --nodeps hwsagent")
	if out, _ := m.try("pgrep -x hwsagent; ls /usr/bin/hwsagent 2>/dev/null"); strings.TrimSpace(out) != "" {
		m.t.Errorf("after the removal there is %s", out)
	}
	m.do("ls /etc/hwsagent/agent.yaml.rpmsave && ls -d /var/lib/hwsagent/wal")
}

// TestMakeInstall installs below a directory, and keeps a configuration that is there.
func TestMakeInstall(t *testing.T) {
	t.Parallel()
	endToEnd(t)
	dir := t.TempDir()
	install := func() {
		t.Helper()
		cmd := exec.Command(needs(t, "make"), "-C", "..", "--no-print-directory", "install", "VERSION=v1.0.0", "BIN="+dir+"/bin", "STAGE="+dir+"/stage", "DESTDIR="+dir+"/root", "PREFIX=/opt/agent")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("make install: %v\n%s", err, out)
		}
	}
	install()
	config := filepath.Join(dir, "root/etc/hwsagent/agent.yaml")
	writeFile(t, config, "probes: []\n")
	install()
	if text, err := os.ReadFile(config); err != nil || string(text) != "probes: []\n" {
		t.Errorf("the configuration is %q, %v", text, err)
	}
	unit, err := os.ReadFile(filepath.Join(dir, "root/etc/systemd/system/hwsagent.service"))
	if err != nil || !strings.Contains(string(unit), "ExecStart=/opt/agent/bin/hwsagent run") || strings.Contains(string(unit), "/usr/") {
		t.Errorf("the unit is %s, %v", unit, err)
	}
	if out, _, code := runToEnd(t, 10*time.Second, filepath.Join(dir, "root/opt/agent/bin/hwsagent"), "--version"); code != 0 || !strings.Contains(out, "v1.0.0") {
		t.Errorf("exit code %d, %s", code, out)
	}
	if _, err := os.Stat(filepath.Join(dir, "root/opt/agent/share/man/man1/hwsagent-check.1.gz")); err != nil {
		t.Error(err)
	}
}
