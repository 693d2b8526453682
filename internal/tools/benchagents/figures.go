//go:build linux

package main

import "fmt"

// figure is a measured quantity of an agent.
type figure string

const (
	steadyCPU  figure = "steady_cpu_seconds_per_million"
	steadyRSS  figure = "steady_rss_mb"
	steadyAnon figure = "steady_anon_mb"
	smallRSS   figure = "small_rss_mb"
	smallAnon  figure = "small_anon_mb"
	smallCPU   figure = "small_cpu_seconds_per_million"
	smallDisk  figure = "small_disk_bytes_per_sample"
	steadyDisk figure = "steady_disk_bytes_per_sample"
	wire1      figure = "wire_bytes_per_sample"
	wire2      figure = "wire2_bytes_per_sample"
	wireZstd   figure = "wire_zstd_bytes_per_sample"
	cpu2       figure = "steady2_cpu_seconds_per_million"
	cpuZstd    figure = "steady_zstd_cpu_seconds_per_million"
	firstAfter figure = "outage_first_sample_seconds"
	drained    figure = "outage_drained_seconds"
	drainCPU   figure = "drain_cpu_seconds_per_million"
	startMean  figure = "start_to_scrape_mean_seconds"
	startMax   figure = "start_to_scrape_max_seconds"
	binary     figure = "binary_mb"
)

// figures are the measured values of one agent. Missing ones were not measured.
type figures map[figure]float64

// aim is an upper bound for hwsagent's figure. The zero aim is none.
type aim struct {
	most float64
	of   string // the agent whose figure in the same run is multiplied by most; "": most is the bound itself
	keep bool   // already reached, and must stay so
}

func (a aim) String() string {
	var text string
	switch {
	case a == aim{}:
		return ""
	case a.of == "":
		text = "≤ " + number(a.most)
	case a.most == 1:
		text = "≤ " + a.of + "'s"
	default:
		text = fmt.Sprintf("≤ %s × %s's", number(a.most), a.of)
	}
	if a.keep {
		text = "keep " + text
	}
	return text
}

// limit returns the aim in the figure's unit. It returns false if the agent for comparison is missing.
func (a aim) limit(f figure, by map[string]figures) (float64, bool) {
	if a.of == "" {
		return a.most, a.most > 0
	}
	of, ok := by[a.of][f]
	return a.most * of, ok
}

// Verdicts on a cell.
const (
	reached  = "reached"
	missed   = "missed"
	unjudged = "–" // no figure, or no bound
)

// row is one line of the table.
type row struct {
	figure figure
	what   string // the quantity and its unit, as the table names them
	aim    aim
}

// verdict reports whether our agent has reached the row's aim.
func (r row) verdict(by map[string]figures) string {
	got, measured := by[ours][r.figure]
	most, judged := r.aim.limit(r.figure, by)
	switch {
	case !measured || !judged:
		return unjudged
	case got <= most:
		return reached
	default:
		return missed
	}
}

// rows returns the figures to measure with their aims, in the table's order. outage and backlog name the measured
// outage.
func rows(p plan) []row {
	heavy := fmt.Sprintf("%d × %d series each %s", p.heavy.targets, p.heavy.series, p.heavy.interval)
	small := fmt.Sprintf("%d series each %s", p.small.series*p.small.targets, p.small.interval)
	backlog := fmt.Sprintf("%.2g million", float64(p.heavy.perRound())*p.outage.Seconds()/p.heavy.interval.Seconds()/1e6)
	return []row{
		{steadyCPU, heavy + ": CPU seconds per million samples", aim{most: 0.75, of: vmagent}},
		{cpu2, "the same with remote write 2.0", aim{}},
		{cpuZstd, "the same with zstd", aim{}},
		{steadyRSS, heavy + ": RSS, mean, MB", aim{most: 65}},
		{steadyAnon, "of that anonymous", aim{most: 40}},
		{smallRSS, small + ": RSS, mean, MB", aim{most: 26}},
		{smallAnon, "of that anonymous", aim{most: 7.5}},
		{smallCPU, small + ": CPU seconds per million samples", aim{most: 1, of: vmagent}},
		{smallDisk, small + ": bytes written to disk per sample", aim{most: 30}},
		{steadyDisk, heavy + ": bytes written to disk per sample", aim{most: 6}},
		{wire1, "bytes on the wire per sample: 1.0, snappy", aim{most: 1.02, of: vmagent, keep: true}},
		{wire2, "2.0, snappy", aim{most: 13}},
		{wireZstd, "1.0, zstd, to VictoriaMetrics", aim{most: 15}},
		{firstAfter, fmt.Sprintf("after an outage of %s: seconds to the first sample", p.outage), aim{most: 3, keep: true}},
		{drained, "until " + backlog + " samples have come", aim{most: 5, keep: true}},
		{drainCPU, "CPU seconds per million samples meanwhile", aim{most: 0.7}},
		{startMean, "start to first scrape: seconds, mean", aim{most: 0.6}},
		{startMax, "the slowest", aim{}},
		{binary, "program file, MB", aim{most: 24}},
	}
}
