//go:build linux

package crashlab

import (
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gosnmp/gosnmp"

	"hwsagent/agent/demo/receiver"
	"hwsagent/e2e/hostile"
	"hwsagent/e2e/mutate"
)

// How many peers there are of each sort: 200 in all.
const (
	ofExporters = 11 // of each format, over HTTP/1.1, and as many over HTTP/2
	ofLists     = 3  // of targets, over HTTP/1.1 and over HTTP/2
	ofCommands  = 4  // that are exporters
	ofFiles     = 3  // of each sort
	ofDevices   = 8  // that speak SNMP
	ofReceivers = 2  // of each version, over HTTP/1.1 and over HTTP/2
	ofEndpoints = 16 // of tokens, which are asked over HTTP/1.1 alone
	ofTokens    = 4  // of them, for targets of remote write; the others are for scrape jobs
	ofAskers    = 6  // of each way in
)

// mostSeries bounds the series of each input, as an operator bounds untrusted inputs: each series takes memory for each
// target that is behind.
const mostSeries = 300

// limited is the same for a scrape job.
const limited = "hwsagent: {max_series: 300}"

// rig puts an agent and its peers together.
type rig struct {
	t     *testing.T
	m     *mutants
	certs *hostile.Certs
	ca    string // file
	dir   string
	page  string // host:port of the agent's web server

	probes, jobs, targets strings.Builder // of the configuration
	names                 map[string]int  // of peers, by sort
	listed                string          // host:port of the exporter that lists name
}

// name gives a peer its name.
func (r *rig) name(sort string) string {
	r.names[sort]++
	return fmt.Sprintf("%s %d", sort, r.names[sort])
}

// servers makes some, over HTTP/1.1, or HTTP/2 with TLS. format is that of the contents.
func (r *rig) servers(n int, sort, format string, h2 bool, right func(*rand.Rand) mutate.Answer, contents []mutate.Content) (all []*server) {
	for range n {
		s := &server{name: r.name(sort), address: freeAddress(r.t), right: right, contents: contents, compress: true}
		over := "HTTP/1.1"
		if h2 {
			s.tls, over = r.certs.Config(true), "HTTP/2"
		}
		protocol, content := s.kinds(1)
		s.protocol = r.m.decks.add(sort+", "+over, protocol)
		s.content = r.m.decks.add(sort+", "+format, content)
		r.m.peers, all = append(r.m.peers, s), append(all, s)
	}
	return all
}

// scheme returns the scheme of the servers' addresses.
func (r *rig) scheme(h2 bool) string {
	if !h2 {
		return "scheme: http"
	}
	return fmt.Sprintf("scheme: https, tls_config: {ca_file: %q}", r.ca)
}

// url is that of a server.
func (s *server) url(path string) string {
	if s.tls != nil {
		return "https://" + s.address + path
	}
	return "http://" + s.address + path
}

func addressesOf(all []*server) string {
	var list []string
	for _, s := range all {
		list = append(list, fmt.Sprintf("%q", s.address))
	}
	return strings.Join(list, ", ")
}

func newMutants(t *testing.T) *mutants {
	t.Helper()
	endToEnd(t)
	m := &mutants{
		decks: newDecks(t), patience: 7 * time.Second, lasting: time.Duration(amount(9, 600)) * time.Second, life: 30 * time.Second, calmly: 1500 * time.Millisecond,
		rounds: hostRounds{ups: map[int64]float64{}, of: map[int64]int{}},
	}
	certs, err := hostile.NewCerts()
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, m: m, certs: certs, dir: t.TempDir(), page: freeAddress(t), names: map[string]int{}}
	r.ca = r.file("ca.pem", string(certs.CA))
	r.exporters()
	r.lists()
	r.files()
	r.devices()
	r.receivers()
	receivers := r.askers()
	t.Cleanup(m.away)
	m.lab = newLab(t, options{
		interval: time.Second, scrape: time.Second, global: ", scrape_start_timestamps: true", wal: "max_bytes: 512MiB, min_free_bytes: 1MiB", also: m.rounds.add,
		more: "  - {name: host, type: host, interval: 1s, timeout: 1s}\n" + r.probes.String() + "scrape_configs:" + r.jobs.String() + receivers + "\nweb: {pprof: true}",
	})
	m.web, m.args[len(m.args)-1] = r.page, r.page
	m.targets = fmt.Sprintf(ownTarget, m.recv.URL()) + r.targets.String()
	m.configure(true)
	return m
}

func (r *rig) file(name, text string) string {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
	return path
}

// format is one in which an exporter answers.
type format struct {
	name, protocol, contentType string
	right                       func(*rand.Rand) []byte
	contents                    []mutate.Content
}

func formats() []format {
	return []format{
		{"text", "PrometheusText0.0.4", "text/plain; version=0.0.4", func(rnd *rand.Rand) []byte { return mutate.Exposition(rnd, false) }, mutate.Expositions(false)},
		{"OpenMetrics", "OpenMetricsText1.0.0", "application/openmetrics-text; version=1.0.0; charset=utf-8", func(rnd *rand.Rand) []byte { return mutate.Exposition(rnd, true) }, mutate.Expositions(true)},
		{"protobuf", "PrometheusProto", "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited", mutate.Families, mutate.AllFamilies()},
	}
}

func answerOf(contentType string, body func(*rand.Rand) []byte) func(*rand.Rand) mutate.Answer {
	return func(rnd *rand.Rand) mutate.Answer {
		return mutate.Answer{Status: http.StatusOK, Head: []mutate.Field{{Name: "Content-Type", Value: contentType}}, Body: mutate.Of(body(rnd))}
	}
}

// exporters are scraped by scrape_configs, and by probes that run a command.
func (r *rig) exporters() {
	for _, f := range formats() {
		for _, h2 := range []bool{false, true} {
			all := r.servers(ofExporters, "exporter, "+f.name, f.name, h2, answerOf(f.contentType, f.right), f.contents)
			fmt.Fprintf(&r.jobs, `
  - {job_name: %q, %s, scrape_protocols: [%s], scrape_native_histograms: true, static_configs: [{targets: [%s]}], %s}`,
				fmt.Sprint(f.name, h2), r.scheme(h2), f.protocol, addressesOf(all), limited)
		}
	}
	for i, f := range formats()[:2] {
		for n, s := range r.servers(ofCommands/2, "exporter of a command, "+f.name, f.name, false, answerOf(f.contentType, f.right), f.contents) {
			s.compress = false // such an exporter is not asked for it
			fmt.Fprintf(&r.probes, "  - {name: exporter-%d-%d, type: exec, command: [/bin/sleep, \"100000\"], scrape_url: %q, max_series: %d}\n", i, n, s.url("/metrics"), mostSeries)
		}
	}
}

// lists are of targets. Whatever they say, it is one exporter of this test that is scraped.
func (r *rig) lists() {
	only := r.servers(1, "exporter that lists name", formats()[0].name, false, answerOf(formats()[0].contentType, formats()[0].right), formats()[0].contents)[0]
	r.listed = only.address
	valid := fmt.Appendf(nil, `[{"targets":[%q],"labels":{"a":"b"}}]`, only.address)
	contents := mutate.Targets(valid)
	relabel := fmt.Sprintf("relabel_configs: [{target_label: __address__, replacement: %q}, {target_label: __scheme__, replacement: http}, {regex: __param_.*, action: labeldrop}]", only.address)
	for _, h2 := range []bool{false, true} {
		for i, s := range r.servers(ofLists, "list of targets", "list", h2, answerOf("application/json", func(*rand.Rand) []byte { return valid }), contents) {
			secure := ""
			if h2 {
				secure = fmt.Sprintf(", tls_config: {ca_file: %q}", r.ca)
			}
			fmt.Fprintf(&r.jobs, "\n  - {job_name: list-%d-%t, %s, http_sd_configs: [{url: %q, refresh_interval: 1s%s}], %s}", i, h2, relabel, s.url("/targets"), secure, limited)
		}
	}
	for i, w := range r.writers("targets-%d.json", "file of targets", func(*rand.Rand) []byte { return valid }, contents) {
		fmt.Fprintf(&r.jobs, "\n  - {job_name: file-%d, %s, file_sd_configs: [{files: [%q], refresh_interval: 1s}], %s}", i, relabel, w.file, limited)
	}
}

// writers make some peers that write files.
func (r *rig) writers(file, sort string, right func(*rand.Rand) []byte, contents []mutate.Content) (all []*writer) {
	d := r.m.decks.add(sort, mutate.Plain(contents))
	for i := range ofFiles {
		w := &writer{name: r.name(sort), file: r.file(fmt.Sprintf(file, i), ""), deck: d, right: right, contents: contents}
		all = append(all, w)
		r.m.peers = append(r.m.peers, w)
	}
	return all
}

// files are read by textfile probes, and printed by commands.
func (r *rig) files() {
	text := formats()[0]
	r.writers("mutant-%d.prom", "textfile", text.right, text.contents)
	fmt.Fprintf(&r.probes, "  - {name: files, type: textfile, directory: %q, max_series: %d}\n", r.dir, mostSeries)
	for i, w := range r.writers("printed-%d", "command", text.right, text.contents) {
		fmt.Fprintf(&r.probes, "  - {name: command-%d, type: exec, command: [/bin/cat, %q], max_series: %d}\n", i, w.file, mostSeries)
	}
}

// devices speak SNMP.
func (r *rig) devices() {
	d := r.m.decks.add("device", deviceKinds(&gosnmp.SnmpPacket{Version: gosnmp.Version2c}))
	for i := range ofDevices {
		dev := &device{name: r.name("device"), deck: d, address: freeAddress(r.t)}
		r.m.peers = append(r.m.peers, dev)
		fmt.Fprintf(&r.probes, "  - {name: device-%d, type: snmp, target: %q, auth: {version: 2, community: public}, modules: [system, if_mib], packet_timeout: 200ms, retries: 1}\n", i, dev.address)
	}
}

// receivers are targets of remote write, and endpoints that give tokens for one that is well.
func (r *rig) receivers() {
	nothing := func(rnd *rand.Rand) mutate.Answer { return mutate.Answer{Status: http.StatusNoContent} }
	text := mutate.Bytes(func(*rand.Rand) []byte { return []byte("out of order sample, series {a=\"b\"}: try again\n") })
	entry := func(name, url, more string) {
		fmt.Fprintf(&r.targets, `
  - name: %s
    url: %s
    remote_timeout: 1s
    queue_config: {batch_send_deadline: 500ms, min_backoff: 30ms, max_backoff: 300ms}%s`, name, url, more)
	}
	secure := fmt.Sprintf("\n    tls_config: {ca_file: %q}\n    enable_http2: true", r.ca)
	for _, message := range []string{"prometheus.WriteRequest", "io.prometheus.write.v2.Request", "auto"} {
		for _, h2 := range []bool{false, true} {
			for i, s := range r.servers(ofReceivers, "receiver, "+message, "words", h2, nothing, text) {
				more := "\n    protobuf_message: " + message
				if h2 {
					more += secure
				}
				entry(fmt.Sprintf("receiver-%s-%t-%d", message, h2, i), s.url("/api/v1/write"), more)
			}
		}
	}
	well := receiver.New(receiver.Options{})
	if err := well.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(well.Stop)
	token := []byte(`{"access_token":"token","token_type":"Bearer","expires_in":1}`)
	for i, s := range r.servers(ofEndpoints, "token endpoint", "token", false, answerOf("application/json", func(*rand.Rand) []byte { return token }), mutate.Tokens(token)) {
		oauth := fmt.Sprintf("oauth2: {client_id: agent, client_secret: mutant, token_url: %q}", s.url("/token"))
		if i < ofTokens {
			entry(fmt.Sprintf("token-%d", i), well.URL(), "\n    "+oauth)
			continue
		}
		fmt.Fprintf(&r.jobs, "\n  - {job_name: token-%d, %s, static_configs: [{targets: [%q]}], %s}", i, oauth, r.listed, limited)
	}
}

// askers use the agent's receivers, and look at what it shows. It returns the configuration.
func (r *rig) askers() string {
	r.t.Helper()
	var in addresses
	for _, a := range []*string{&in.write, &in.push, &in.text, &in.otlp, &in.grpc} {
		*a = freeAddress(r.t)
	}
	shown := freeAddress(r.t)
	cert, key, err := r.certs.PEM()
	if err != nil {
		r.t.Fatal(err)
	}
	web := r.file("web.yml", fmt.Sprintf("tls_server_config: {cert_file: %q, key_file: %q}\n", r.file("cert.pem", string(cert)), r.file("key.pem", string(key))))
	add := func(sort, format string, set func(a *asker)) {
		for range ofAskers {
			a := &asker{sort: sort, name: r.name(sort), patience: r.m.patience}
			set(a)
			over := "HTTP/1.1"
			if a.http2 {
				over = "HTTP/2"
			}
			protocol, content := a.kinds()
			a.protocol, a.content = r.m.decks.add(sort+", "+over, protocol), r.m.decks.add(sort+", "+format, content)
			r.m.peers, r.m.askers = append(r.m.peers, a), append(r.m.askers, a)
		}
	}
	for _, w := range ways() {
		over := []bool{false}
		if w == byWrite1 || w == byWrite2 {
			over = []bool{false, true}
		}
		for _, h2 := range over {
			add(fmt.Sprint("client, ", w, map[bool]string{true: " over HTTP/2"}[h2]), string(w), func(a *asker) {
				a.http2 = h2
				a.way(w, in)
				if w == byWrite1 || w == byWrite2 {
					a.tls = &tls.Config{InsecureSkipVerify: true, NextProtos: []string{map[bool]string{false: "http/1.1", true: "h2"}[h2]}}
				}
			})
		}
	}
	for _, what := range []string{"OpenMetrics import", "protobuf push", "OTLP as JSON", "pull", "page"} {
		add("client, "+what, what, func(a *asker) { a.other(what, in, r.page, shown) })
	}
	limits := fmt.Sprintf("limits: {body_bytes: 2MiB, decoded_bytes: 8MiB, memory_bytes: 32MiB, active_series: %d}", mostSeries)
	return fmt.Sprintf(`
receivers:
  remote_write: {listen: %q, web_config_file: %q, %[7]s}
  pushgateway: {listen: %[3]q, interval: 1s, %[7]s}
  import: {listen: %[4]q, %[7]s}
  otlp: {http: {listen: %[5]q}, grpc: {listen: %[6]q}, %[7]s}
pull: {listen: %[8]q}`, in.write, web, in.push, in.text, in.otlp, in.grpc, limits, shown)
}
