package check

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The module files that a probe names are read; broken, unknown or deviating parts are reported with their place,
// without secrets.
func TestCheckModules(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("good.yml", "auths:\n  site: {community: CANARY, future: 1}\nmodules:\n  system:\n    get: [1.3.6.1.2.1.1.3.0]\n    metrics: [{name: up, oid: 1.3.6.1.2.1.1.3, type: DateAndTime}]\n")
	write("bad.yml", "auths:\n  site: {community: [CANARY]}\nmodules:\n  m:\n    walk: [ifTable]\n")
	write("agent.yaml", `probes:
  - {name: good, type: snmp, target: h, config_files: [good.yml], auth: site, modules: [system]}
  - {name: bad, type: snmp, target: h, config_files: [bad.yml], auth: site, modules: [m]}
  - {name: none, type: snmp, target: h, config_files: [none.yml], modules: [system]}
  - {name: own, type: snmp, target: h, snmp_definitions: [own]}
`)
	if err := os.Mkdir(filepath.Join(dir, "own"), 0o700); err != nil {
		t.Fatal(err)
	}
	write("own/a.yaml", "definition: a\nfoo: 1\n")
	r, err := Run(t.Context(), Options{ConfigFile: filepath.Join(dir, "agent.yaml"), Level: NoNetwork})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, g := range r.Groups {
		for _, s := range g.Steps {
			if strings.HasPrefix(s.Name, "modules of") {
				got = append(got, fmt.Sprintf("%s %s: %s", s.Result, s.Name, strings.ReplaceAll(s.Text, dir+string(filepath.Separator), "")))
			}
		}
	}
	want := []string{
		"ok modules of probe good: 1 module of config_files",
		"warn modules of probe good: good.yml:2:29: the key of a login is not known and has no effect",
		"ok modules of probe good: good.yml:4:3: module system: a date with a month or day of 0, which stands for never, gives no sample of up; snmp_exporter gives a time before 1970",
		"ok modules of probe good: good.yml:4:3: the module system is read in place of the built-in one of that name",
		"fail modules of probe bad: bad.yml:2:21: community must be a text or number",
		`fail modules of probe bad: bad.yml:5:12: walk of module "m" is "ifTable", not an OID`,
		"fail modules of probe none: config_files[0]: no file matches none.yml; put an snmp.yml there",
		`fail modules of probe own: own/a.yaml:2: a definition has no key "foo"; there are definition, detect, fills, includes, mib, one_of, rank, replaces, tables, vendor`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if strings.Contains(fmt.Sprint(r), "CANARY") {
		t.Error("the report has a secret")
	}
}
