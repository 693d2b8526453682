//go:build linux

package host

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"hwsagent/probes"
)

// The comparison with a real node_exporter: Debian's, version 1.5 in Debian 12. What
// later versions changed, and we follow, is listed here.

// newer are families that 1.5 does not have, or cannot read from these fixtures; they are compared with what 1.12.1
// expects.
var newer = regexp.MustCompile(`^node_(cpu_(scaling_governor|online|frequency_avg_hertz)|edac_channel_.*|hwmon_freq_.*|` +
	`md_(degraded|raid_disks)|nvme_namespace_.*|pressure_irq_.*|softnet_(cpu_collision_total|flow_limit_count_total|received_rps_total|backlog_len)|` +
	`filesystem_mount_info|os_support_end_timestamp_seconds|watchdog_.*|kernel_hung_.*|fibrechannel_.*|nfsd_.*|dmmultipath_.*|btrfs_.*commit.*|zfs_(dbuf_.*|arc_memory_available_bytes))$`)

// newerLabels are labels that 1.5 does not have, by family.
var newerLabels = map[string]string{
	"node_disk_info":    "rotational",
	"node_network_info": "adminstate",
	"node_nvme_info":    "cntlid",
}

// intended are the other differences: series that are left out of the comparison.
var intended = []struct{ series, reason string }{
	{`^node_scrape_collector_`, "what a collector took differs, and absent hardware is silent here, a failure there"},
	{`^node_hwmon_.*chip="(ieee80211_phy0|platform_asus_nb_wmi)`, "two chips on one device: 1.5 sends duplicates, which Prometheus refuses; named apart since 1.12"},
	{`^node_hwmon_sensor_label{.*sensor="freq`, "1.5 does not know clocks"},
	{`^node_disk_info{device="mmcblk0`, "the serial number of MMC cards since 1.6"},
	{`^node_time_`, "the time goes on"},
	{`^node_nfs_requests_total{method="(GetDeviceInfo|LayoutGet)"`, "1.5 took one for the other"},
	{`^node_zfs_zpool_dataset_.*zpool="pool3"`, "1.5 cuts names of data sets at a space"},
	{`^node_zfs_zpool_state{state="suspended"`, "1.5 does not know the state"},
	{`^node_tcp_connection_states`, "1.5 asks the running kernel by netlink"},
	{`^node_bcache_btree_read_average_duration_seconds`, "the kernel's file is in microseconds (btree_read_average_duration_us); node_exporter takes them for nanoseconds"},
	{`^node_exporter_build_info`, "of the exporter itself"},
}

// exporter starts a node_exporter with our collectors and returns what it serves.
func exporter(t *testing.T, c Config, flags ...string) func() *scrape {
	t.Helper()
	program := needs(t, "prometheus-node-exporter")
	s, err := newSettings(c)
	if err != nil {
		t.Fatal(err)
	}
	args := []string{
		"--web.listen-address=127.0.0.1:0", "--web.disable-exporter-metrics", "--collector.disable-defaults",
		"--path.procfs=" + s.ProcPath, "--path.sysfs=" + s.SysPath, "--path.rootfs=" + s.RootFSPath, "--path.udev.data=" + s.UdevPath,
		"--collector.filesystem.mount-points-exclude=" + s.MountPointsExclude,
		"--collector.filesystem.fs-types-exclude=" + s.FSTypesExclude,
		"--collector.diskstats.device-exclude=" + s.DiskstatsExclude,
		"--collector.netdev.device-exclude=" + s.NetdevExclude,
		"--collector.netstat.fields=" + s.NetstatFields,
		"--collector.vmstat.fields=" + s.VmstatFields,
	}
	for _, name := range s.enabled {
		if !slices.Contains([]string{"watchdog", "kernel_hung", "dmmultipath", "bcachefs"}, name) && !slices.Contains(hardwareNames, name) { // since 1.6, 1.10, 1.12 and later, and ours alone
			args = append(args, "--collector."+name)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program, append(args, flags...)...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	address := make(chan string, 1)
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		listening := regexp.MustCompile(`msg="Listening on" address=(\S+)`)
		var before []string
		listens := false
		for in := bufio.NewScanner(stderr); in.Scan(); {
			if m := listening.FindStringSubmatch(in.Text()); m != nil {
				address <- m[1]
				listens = true
			} else if !listens {
				before = append(before, in.Text())
			}
		}
		if !listens {
			t.Errorf("%s ended before it listened: %s", program, strings.Join(before, "\n"))
			close(address)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-drained
		_ = cmd.Wait() // killed
	})
	listens, ok := <-address
	if !ok {
		t.FailNow()
	}
	url := "http://" + listens + "/metrics"
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
	return func() *scrape {
		t.Helper()
		resp, err := client.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		return parse(t, resp.Body)
	}
}

// parse reads the exposition format.
func parse(t *testing.T, in io.Reader) *scrape {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(in)
	if err != nil {
		t.Fatal(err)
	}
	return ofFamilies(families)
}

func ofFamilies(families map[string]*dto.MetricFamily) *scrape {
	s := newScrape()
	for name, f := range families {
		if !strings.HasPrefix(name, "node_") {
			continue
		}
		s.types[name] = strings.ToLower(f.GetType().String())
		for _, m := range f.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, l.GetName(), l.GetValue())
			}
			_ = s.add(name, labels, m.GetCounter().GetValue()+m.GetGauge().GetValue()+m.GetUntyped().GetValue())
		}
	}
	return s
}

// compare reports in what ours differs from theirs, which must say the same.
func compare(ours, theirs *scrape, same func(key string, ours, theirs float64) bool) []string {
	var out []string
	for _, key := range keysOf(ours, theirs) {
		name, _, _ := strings.Cut(key, "{")
		o, isOurs := ours.values[key]
		v, isTheirs := theirs.values[key]
		switch {
		case !isTheirs:
			out = append(out, fmt.Sprintf("only ours: %s %v", key, o))
		case !isOurs:
			out = append(out, fmt.Sprintf("only theirs: %s %v", key, v))
		case ours.types[name] != theirs.types[name]:
			out = append(out, fmt.Sprintf("%s is a %s, theirs a %s", key, ours.types[name], theirs.types[name]))
		case !same(key, o, v):
			out = append(out, fmt.Sprintf("%s is %v, theirs %v", key, o, v))
		}
	}
	return out
}

func keysOf(scrapes ...*scrape) []string {
	all := make(map[string]bool)
	for _, s := range scrapes {
		for key := range s.values {
			all[key] = true
		}
	}
	keys := make([]string, 0, len(all))
	for key := range all {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}

// compared returns the scrape without what is listed as different.
func compared(s *scrape) *scrape {
	out := &scrape{values: make(map[string]float64), types: s.types}
next:
	for key, v := range s.values {
		name, _, _ := strings.Cut(key, "{")
		if newer.MatchString(name) || strings.HasPrefix(name, "hw_") {
			continue
		}
		for _, d := range intended {
			if regexp.MustCompile(d.series).MatchString(key) {
				continue next
			}
		}
		if label := newerLabels[name]; label != "" {
			key = regexp.MustCompile(label+`="[^"]*",?`).ReplaceAllString(key, "")
			key = strings.Replace(key, ",}", "}", 1)
		}
		// Debian's builds write hyphens where node_exporter's own write none.
		key = regexp.MustCompile(`btrfs_dev_uuid="[^"]*"`).ReplaceAllStringFunc(key, func(label string) string { return strings.ReplaceAll(label, "-", "") })
		out.values[key] = v
	}
	return out
}

func collect(t *testing.T, p *Probe) *scrape {
	t.Helper()
	r := probes.NewRound(0)
	if err := p.Collect(t.Context(), r); err != nil {
		t.Error(err)
	}
	return ofRound(t, r)
}

// TestAgainstNodeExporterFixtures compares every series over node_exporter's own
// fixtures with what a real node_exporter serves from them.
func TestAgainstNodeExporterFixtures(t *testing.T) {
	c := fixtures(t)
	c.Collectors = []string{"-filesystem", "+processes", "+tcpstat", "+interrupts"} // 1.5 reads /proc/1/mounts, which the fixtures lack
	// By default it asks netlink, which knows nothing of the fixtures.
	theirs := compared(exporter(t, c, "--no-collector.netdev.netlink", "--collector.cpu.guest")())
	p, err := New(c, quiet(), nil)
	if err != nil {
		t.Fatal(err)
	}
	all := collect(t, p)
	ours := compared(all)
	t.Logf("%d of our %d series are compared", len(ours.values), len(all.values))
	if len(ours.values) < 1000 {
		t.Error("that is too few")
	}
	host := regexp.MustCompile(`^node_timex_`) // of the running machine
	for _, d := range compare(ours, theirs, func(key string, o, v float64) bool {
		return o == v || host.MatchString(key)
	}) {
		t.Error(d)
	}
}

// TestAgainstNodeExporterLive does the same on this machine, where values move: ours
// are read before and after theirs. Counters lie between the two, and what stands
// still is equal.
func TestAgainstNodeExporterLive(t *testing.T) {
	c := Config{}
	read := exporter(t, c, "--collector.cpu.guest")
	p, err := New(c, quiet(), nil)
	if err != nil {
		t.Fatal(err)
	}
	before := compared(collect(t, p))
	theirs := compared(read())
	after := compared(collect(t, p))

	still := regexp.MustCompile(`^node_(memory_(MemTotal|SwapTotal|CommitLimit|Hugepagesize|DirectMap\w+|VmallocTotal)\w*$|boot_time|uname|os_|dmi|disk_info|` +
		`filesystem_(size|readonly|device_error|files{)|network_(info|mtu|flags|up|iface|protocol|speed|address)|filefd_maximum|entropy_pool|cpu_.*_(min|max)_hertz|md_|timex_tick)`)
	drift := regexp.MustCompile(`^node_cpu_seconds_total{.*mode="(idle|iowait)"`) // the kernel's own estimate goes back and forth
	mounted := regexp.MustCompile(`^node_xfs_.*device="loop`)                     // counts from zero again when another test mounts a file meanwhile
	differences := 0
	report := func(format string, args ...any) {
		differences++
		t.Errorf(format, args...)
	}
	for _, key := range keysOf(before, theirs, after) {
		name, _, _ := strings.Cut(key, "{")
		b, inBefore := before.values[key]
		a, inAfter := after.values[key]
		v, isTheirs := theirs.values[key]
		switch {
		case inBefore && inAfter && !isTheirs:
			report("only ours: %s %v", key, a)
		case isTheirs && !inBefore && !inAfter:
			report("only theirs: %s %v", key, v)
		case !isTheirs || !inBefore || !inAfter: // it came or went in between
		case after.types[name] != theirs.types[name]:
			report("%s is a %s, theirs a %s", key, after.types[name], theirs.types[name])
		case still.MatchString(key):
			if b == a && v != a {
				report("%s is %v, theirs %v", key, a, v)
			}
		case after.types[name] == "counter":
			slack := 0.0
			if drift.MatchString(key) {
				slack = 1
			}
			if (a < b || v < b) && mounted.MatchString(key) {
				continue
			}
			if v < b-slack || v > a+slack || math.IsNaN(v) {
				report("%s is %v, then %v, theirs in between %v", key, b, a, v)
			}
		}
	}
	if differences == 0 && len(theirs.values) < 200 {
		t.Errorf("only %d series were compared", len(theirs.values))
	}
}

// TestAgainstNewNodeExporter compares what 1.5 does not know with what 1.12.1 expects
// of the same fixtures.
func TestAgainstNewNodeExporter(t *testing.T) {
	f, err := os.Open("testdata/node_exporter-1.12.1.prom")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	theirs := parse(t, f)
	c := fixtures(t)
	c.Collectors = append(slices.Clone(hostOnly), "+processes", "+interrupts")
	p, err := New(c, quiet(), nil)
	if err != nil {
		t.Fatal(err)
	}
	ours := collect(t, p)
	if len(theirs.values) < 800 {
		t.Errorf("there are only %d series", len(theirs.values))
	}
	// The kernel counts a namespace in sectors of 512 bytes; 1.12.1 multiplies by the
	// logical block size, which procfs corrected since.
	sector := regexp.MustCompile(`^node_nvme_namespace_(size|capacity)_bytes`)
	for _, key := range keysOf(theirs) {
		name, _, _ := strings.Cut(key, "{")
		want := theirs.values[key]
		if sector.MatchString(key) {
			want *= 512.0 / 4096
		}
		if name == "node_bcache_btree_read_average_duration_seconds" {
			want = 0.001305 // 1305 microseconds, which 1.12.1 takes for nanoseconds
		}
		if got, ok := ours.values[key]; !ok || got != want || ours.types[name] != theirs.types[name] {
			t.Errorf("%s is %v (%v) of type %s, want %v of type %s", key, got, ok, ours.types[name], want, theirs.types[name])
		}
	}
}
