package convert_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"hwsagent/agent/convert"
)

// TestFlagsOfVMAgent: each URL gets what is its own, what has no counterpart is named, and the file of scrape jobs is read.
func TestFlagsOfVMAgent(t *testing.T) {
	read := func(name string) ([]byte, error) {
		if name != "scrape.yml" {
			return nil, os.ErrNotExist
		}
		return []byte("global: {external_labels: {a: b}}\nscrape_configs: [{job_name: j, static_configs: [{targets: [h]}]}]\n"), nil
	}
	r, err := convert.Flags([]string{
		"-remoteWrite.url=http://one/", "--remoteWrite.url", "http://two/", "-remoteWrite.bearerTokenFile=first,second", "-remoteWrite.sendTimeout=20s",
		"-remoteWrite.headers=X-Scope-OrgID: seven^^A:b", "-remoteWrite.tlsInsecureSkipVerify", "-remoteWrite.label=site=fra1", "-promscrape.config=scrape.yml",
		"-remoteWrite.tmpDataPath=/data", `-remoteWrite.basicAuth.password="a,b"`,
	}, read)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"url: http://one/", "url: http://two/", "bearer_token_file: first", "bearer_token_file: second", "X-Scope-OrgID: seven", "A: b", "insecure_skip_verify: true",
		"site: fra1", "a: b", "job_name: j", "password: a,b", "flags:10: remoteWrite.tmpDataPath: use the flag --storage.path",
	} {
		if !strings.Contains(r.Config, want) {
			t.Errorf("%q is not in:\n%s", want, r.Config)
		}
	}
	if n := strings.Count(r.Config, "remote_timeout: 20s"); n != 2 {
		t.Errorf("%d entries have the timeout:\n%s", n, r.Config)
	}
	if strings.Contains(r.Config, "there is no remote_write") {
		t.Errorf("a target is missed:\n%s", r.Config)
	}
	for _, bad := range [][]string{{"file.yml"}, {"-"}, {"-promscrape.config=none.yml"}} {
		if _, err := convert.Flags(bad, read); err == nil {
			t.Errorf("%q was converted", bad)
		}
	}
	if _, err := convert.Flags([]string{"-promscrape.config=none.yml"}, read); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}
