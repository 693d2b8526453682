package scrape

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

// resolv is a resolv.conf whose first server is not there.
const resolv = "nameserver 127.0.0.54\nnameserver 127.0.0.53\nsearch test\n"

// answering answers every request on a port of all addresses.
func answering(t *testing.T) (port string) {
	t.Helper()
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "a 1\n") })}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(l) // until it is closed
	}()
	t.Cleanup(func() {
		s.Close()
		<-done
	})
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return port
}

// seen returns what is scraped: each target as job, address and health.
func seen(s *Scraper) (all []string) {
	for _, j := range s.Status() {
		for _, one := range j.Targets {
			all = append(all, strings.TrimSuffix(strings.TrimPrefix(one.URL, "http://"), "/metrics")+" of "+j.Name+" "+one.Health)
		}
	}
	slices.Sort(all)
	return all
}

// addresses returns what is seen but for the health.
func addresses(seen []string) (all []string) {
	for _, one := range seen {
		all = append(all, one[:strings.LastIndexByte(one, ' ')])
	}
	return all
}

// failed returns how many lookups have failed.
func failed(t *testing.T, reg *prometheus.Registry) (n float64) {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "prometheus_sd_dns_lookup_failures_total" {
			n += f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	return n
}

// TestDNSDiscovery: targets follow the answers of a name server, for every type of record;
// without an answer they stay, and an answer without records ends them.
func TestDNSDiscovery(t *testing.T) {
	if !inNamespaces(t, resolv) {
		return
	}
	server, port := serveNames(t, "127.0.0.53"), answering(t)
	hosts := []string{"steady.test. A 127.0.1.9", "one.test. A 127.0.1.1", "two.test. A 127.0.1.2"}
	first := append([]string{
		"moving-a.test. A 127.0.1.1", "moving-a.test. A 127.0.1.2",
		"moving-aaaa.test. AAAA ::ffff:127.0.1.1", "moving-aaaa.test. AAAA ::ffff:127.0.1.2",
		"moving-srv.test. SRV 0 0 " + port + " one.test.", "moving-srv.test. SRV 0 0 " + port + " two.test.",
		"moving-mx.test. MX 10 one.test.", "moving-mx.test. MX 20 two.test.",
		"moving-ns.test. NS one.test.", "moving-ns.test. NS two.test.",
	}, hosts...)
	second := append([]string{
		"moving-a.test. A 127.0.1.3", "moving-a.test. A 127.0.1.2", "moving-aaaa.test. AAAA ::ffff:127.0.1.2",
		"moving-srv.test. SRV 0 0 " + port + " two.test.", "moving-mx.test. MX 20 two.test.", "moving-ns.test. NS two.test.",
	}, hosts...)
	const ones, twos = "127.0.1.1:%[1]s of a|127.0.1.1:%[1]s of aaaa|one.test:%[1]s of srv|one.test:%[1]s of mx|one.test:%[1]s of ns",
		"127.0.1.2:%[1]s of a|127.0.1.2:%[1]s of aaaa|two.test:%[1]s of srv|two.test:%[1]s of mx|two.test:%[1]s of ns"
	up := func(parts ...string) (all []string) {
		for _, p := range append(parts, "127.0.1.9:%[1]s of a") { // whose name never moves
			all = append(all, strings.Split(fmt.Sprintf(p, port), "|")...)
		}
		for i := range all {
			all[i] += " up"
		}
		slices.Sort(all)
		return all
	}
	both, next, none := up(ones, twos), up(twos, "127.0.1.3:%[1]s of a"), up()

	m := newMemory()
	var entries []string
	types := []string{"A", "AAAA", "SRV", "MX", "NS"}
	for _, kind := range types {
		name, more := strings.ToLower(kind), ""
		if kind == "A" {
			more = ", steady.test"
		}
		// The name has no dot: it is looked for in the domain that resolv.conf says.
		entries = append(entries, fmt.Sprintf("{job_name: %s, dns_sd_configs: [{names: [moving-%[1]s%s], type: %s, port: %s, refresh_interval: 100ms}], "+
			"relabel_configs: [{source_labels: [__meta_dns_name], target_label: name}]}", name, more, kind, port))
	}
	server.set(t, fails, first...)
	s, reg, _ := run(t, m, jobs(t, entries...))
	shows := func(what string, want []string) {
		t.Helper()
		var diff string
		defer func() {
			if t.Failed() {
				t.Logf("%s (-want +got):\n%s", what, diff)
			}
		}()
		until(t, "the targets are right "+what, func() bool { diff = cmp.Diff(want, seen(s)); return diff == "" })
	}
	broken := func() { // each name's lookup has failed, and the targets that there are were scraped since
		t.Helper()
		before, rounds := failed(t, reg), m.committed()
		until(t, "lookups fail", func() bool { return failed(t, reg) >= before+float64(2*len(types)) })
		until(t, "scrapes go on", func() bool { return m.committed() >= rounds+4*len(seen(s)) })
	}

	broken()
	shows("with a server that fails from the beginning", none)
	server.set(t, answers)
	shows("with a server that answers", both)
	server.set(t, answers, second...)
	shows("with another answer", next)
	gone := `{__name__="up", instance="127.0.1.1:` + port + `", job="a", name="moving-a"}`
	until(t, "a target that is gone is stale", func() bool {
		all := m.all(gone)
		return len(all) > 1 && all[len(all)-1].stale
	})
	for _, mode := range []string{fails, refuses, silent, crowded} {
		server.set(t, mode, first...) // which discovery never sees
		broken()
		if asked, _ := server.questions(); asked == 0 {
			t.Errorf("a server that %s was not asked", mode)
		}
		if diff := cmp.Diff(addresses(next), addresses(seen(s))); diff != "" {
			t.Errorf("with a server that %s (-want +got):\n%s", mode, diff)
		}
		shows("with a server that "+mode, next) // on a busy machine a scrape may have failed
	}
	server.set(t, shortened)
	shows("with answers that come over TCP only", both)
	if _, tcp := server.questions(); tcp == 0 {
		t.Error("no question came over TCP")
	}
	server.set(t, unknownName)
	shows("when there is no such name", none)
	server.set(t, answers)
	shows("with a server that answers again", both)
}
