package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hwsagent/agent/demo/receiver"
)

// TestPull: Debian's Prometheus scrapes the agent, at /metrics and at /federate, over TLS with a user, and gets the
// data that the agent delivered to it: the same series and values, native histograms too. A series that a probe no
// longer reads disappears.
func TestPull(t *testing.T) {
	t.Parallel()
	needs(t, "prometheus")
	dir := t.TempDir()
	port := freePort(t)
	pki, err := receiver.NewPKI(dir)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(pki.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	secure := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true}, Timeout: 10 * time.Second}
	file := writeFile(t, filepath.Join(dir, "web.yml"), "tls_server_config: {cert_file: server.pem, key_file: server.key}\n"+
		"basic_auth_users: {scraper: $2a$04$IUl8PuF2eY.RPNhpNvNqyueEd2LWUKWAcZE9vsI01hCFsT.3EhFne} # test\n")
	prom := writeFile(t, filepath.Join(dir, "said.prom"), "fixed{x=\"1\"} 17.25\nfixed{x=\"2\"} -3\nleaves 1\n")
	config := fmt.Sprintf(`
global: {scrape_interval: 500ms, external_labels: {site: lab}}
pull: {listen: "127.0.0.1:%d", web_config_file: %s}
probes:
  - {name: files, type: textfile, directory: %s}
  - {name: host, type: host, collectors: [meminfo, os]}
  - {name: can, type: canary, series: 1, native: true}
`, port, file, dir)
	a := startAgent(t, config)
	auth := func(kind, target string) string {
		return fmt.Sprintf("  - {job_name: %s, honor_labels: true, scrape_interval: 1s, static_configs: [{targets: ['127.0.0.1:%d']}], scheme: https, tls_config: {ca_file: %s}, basic_auth: {username: scraper, password: test}%s}\n", kind, port, pki.CAFile, target)
	}
	scraper := startPrometheusWith(t, "global: {scrape_interval: 1s}\nscrape_configs:\n"+
		auth("pulled", ", metric_relabel_configs: [{target_label: by, replacement: pulled}]")+
		auth("federated", `, metrics_path: /federate, params: {'match[]': ['{__name__=~"fixed|node_os_info|node_memory_MemTotal_bytes|up"}']}, metric_relabel_configs: [{target_label: by, replacement: federated}]`))
	a.reload(config + "remote_write:\n" + entry("p", scraper.writeURL()))
	same := []string{"fixed", "node_os_info", "node_memory_MemTotal_bytes"}
	for _, name := range same {
		scraper.wait(time.Minute, fmt.Sprintf(`count by (site) (%[1]s{by="", site="lab"}) == count by (site) (%[1]s{by="pulled"} == ignoring(by) %[1]s{by=""}) and count by (site) (%[1]s{by=""}) == count by (site) (%[1]s{by="federated"} == ignoring(by) %[1]s{by=""})`, name))
	}
	// It asks for protobuf, in which there are native histograms.
	scraper.wait(time.Minute, `histogram_count(hwsagent_canary_histogram{by="pulled"}) > 0 and ignoring(by) histogram_count(hwsagent_canary_float_histogram{by="pulled"}) > 0`)
	scraper.wait(time.Minute, `up{job="files", by="pulled"} == 1 and ignoring(by) up{job="files", by="federated"} == 1`)
	if r := scraper.query(`leaves{by="federated"}`); len(r) > 0 {
		t.Errorf("a selector lets in what it does not choose: %v", r)
	}

	https := fmt.Sprintf("https://127.0.0.1:%d", port)
	if code, _ := pullFrom(t, secure, https, "", ""); code != http.StatusUnauthorized {
		t.Errorf("without a password: %d", code)
	}
	_, text := pullFrom(t, secure, https, "test", "application/openmetrics-text;version=1.0.0")
	if !strings.HasSuffix(text, "# EOF\n") || !strings.Contains(text, "fixed{") {
		t.Errorf("OpenMetrics: %.300s", text)
	}

	scraper.wait(time.Minute, `leaves{by="pulled"}`)
	writeFile(t, prom, "fixed{x=\"1\"} 17.25\nfixed{x=\"2\"} -3\n")
	eventually(t, time.Minute, func() string {
		if _, text := pullFrom(t, secure, https, "test", ""); strings.Contains(text, "leaves{") {
			return "a series that ended is still shown"
		}
		return ""
	})
	// Without timestamps the scraper notices at once.
	eventually(t, time.Minute, func() string {
		if r := scraper.query(`leaves`); len(r) > 0 {
			return fmt.Sprintf("the scraper still has %v", r)
		}
		return ""
	})

	// An address that all can reach is honoured, and warned about.
	next := freePort(t)
	open := strings.Replace(strings.Replace(config, fmt.Sprintf("127.0.0.1:%d", port), fmt.Sprintf(":%d", next), 1), ", web_config_file: "+file, "", 1)
	a.reload(open)
	if code, _ := pullFrom(t, httpClient(t), fmt.Sprintf("http://127.0.0.1:%d", next), "", ""); code != http.StatusOK {
		t.Errorf("the open listener answers %d", code)
	}
	if _, page, err := a.ask(http.MethodGet, "/"); err != nil || !strings.Contains(page, "can read every value") {
		t.Errorf("the page does not warn: %v", err)
	}
	out, _, _ := hwsagent(t, "check", "--no-network", "--config.file", a.config, "--storage.path", a.storage)
	if !strings.Contains(out, "can read every value") {
		t.Errorf("check does not warn:\n%s", out)
	}
}

// pullFrom asks the pull endpoint.
func pullFrom(t *testing.T, client *http.Client, base, password, accept string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	if password != "" {
		req.SetBasicAuth("scraper", password)
	}
	req.Header.Set("Accept", accept)
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}
