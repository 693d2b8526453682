package convert_test

import (
	"strings"
	"testing"

	"hwsagent/agent/convert"
)

// TestSettings: settings of other programs become the agent's settings of the same meaning.
func TestSettings(t *testing.T) {
	integration := func(text string) string { return "integrations: {node_exporter: {enabled: true, " + text + "}}\n" }
	collector := func(receivers, exporter string) string {
		return "receivers: {" + receivers + "}\nexporters: {prometheusremotewrite: {endpoint: 'https://x'" + exporter + "}}\n" +
			"service: {pipelines: {metrics: {receivers: [hostmetrics, otlp], exporters: [prometheusremotewrite]}}}\n"
	}
	for _, tc := range []struct{ format, text, want string }{
		{"grafana-agent", integration("rootfs_path: /host, procfs_path: /host/proc, sysfs_path: /host/sys"), "rootfs_path: /host proc_path: /host/proc sys_path: /host/sys"},
		{"grafana-agent", integration("enable_collectors: [systemd], disable_collectors: [ipvs]"), "collectors: [+systemd, -ipvs]"},
		{"grafana-agent", integration("set_collectors: [cpu, meminfo], enable_collectors: [xfs], disable_collectors: [cpu]"), "collectors: [meminfo, xfs] hw: true"},
		{"grafana-agent", integration("textfile_directory: /text"), "name: textfile type: textfile directory: /text"},
		{"grafana-agent", integration("relabel_configs: [{target_label: instance, replacement: web-7}]"), "labels: job: integrations/node_exporter instance: web-7"},
		{"grafana-agent", integration("filesystem_fs_types_exclude: ^tmpfs$"), "fs_types_exclude: ^tmpfs$"},
		{"grafana-agent", "integrations: {windows_exporter: {enabled: true, text_file: {text_file_directory: 'C:\\text'}}}\n", `type: textfile directory: C:\text`},
		{"otelcol", collector("hostmetrics: {root_path: /hostfs, scrapers: {cpu: {}}}", ""), "rootfs_path: /hostfs proc_path: /hostfs/proc sys_path: /hostfs/sys"},
		{"otelcol", collector("hostmetrics: {scrapers: {filesystem: {exclude_mount_points: {mount_points: [/a.b], match_type: strict}}}}", ""), `mount_points_exclude: ^/a\.b$|^/(dev|`},
		{"otelcol", collector("otlp: {protocols: {grpc: {}}}", ", resource_to_telemetry_conversion: {enabled: true}"), "promote_all_resource_attributes: true"},
		{"otelcol", collector("otlp: {protocols: {grpc: {}}}", ", add_metric_suffixes: false"), "translation_strategy: UnderscoreEscapingWithoutSuffixes"},
	} {
		r, err := convert.Convert(tc.format, "f.yaml", []byte(tc.text))
		if err != nil || !strings.Contains(strings.Join(strings.Fields(r.Config), " "), tc.want) {
			t.Errorf("%s: %v: want %s in\n%s", tc.text, err, tc.want, r.Config)
		}
	}
	r, err := convert.Flags([]string{"-remoteWrite.url=http://a/", "-remoteWrite.url=http://b/", "-remoteWrite.maxDiskUsagePerURL=1GB,2GiB"}, nil)
	if err != nil || !strings.Contains(r.Config, "max_backlog: \"1000000000\"") && !strings.Contains(r.Config, "max_backlog: '1000000000'") || !strings.Contains(r.Config, "max_backlog: 2GiB") {
		t.Errorf("%v\n%s", err, r.Config)
	}
	r, err = convert.Convert("otelcol", "f.yaml", []byte(collector("hostmetrics: {scrapers: {process: {}}}", "")))
	if err != nil || !strings.Contains(r.Config, "receivers.hostmetrics.scrapers.process: ") {
		t.Errorf("%v\n%s", err, r.Config)
	}
}
