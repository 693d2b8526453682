package nvidia

import (
	"strings"

	"github.com/prometheus/common/model"

	"hwsagent/probes"
)

// dcgmFamily is a metric of dcgm-exporter that nvidia-smi has a number for.
type dcgmFamily struct {
	probes.Family
	scale float64  // from the base unit of [node.number]
	paths []string // the first that has a number; none: the energy
}

// dcgmFamilies returns the metrics of dcgm-exporter's default-counters.csv that nvidia-smi has, with dcgm-exporter's names
// and units. The help texts are this project's.
func dcgmFamilies() []dcgmFamily {
	const percent, mebi, mega = 100, 1.0 / (1 << 20), 1e-6
	gauge, counter := model.MetricTypeGauge, model.MetricTypeCounter
	all := []struct {
		name  string
		typ   model.MetricType
		help  string
		scale float64
		paths []string
	}{
		{"SM_CLOCK", gauge, "Clock of the multiprocessors in MHz.", mega, []string{"clocks/sm_clock"}},
		{"MEM_CLOCK", gauge, "Clock of the memory in MHz.", mega, []string{"clocks/mem_clock"}},
		{"GPU_TEMP", gauge, "Temperature of the GPU in degrees Celsius.", 1, []string{"temperature/gpu_temp"}},
		{"MEMORY_TEMP", gauge, "Temperature of the memory in degrees Celsius.", 1, []string{"temperature/memory_temp"}},
		{"POWER_USAGE", gauge, "Power that the GPU consumes in watts.", 1, powerDraw},
		{"TOTAL_ENERGY_CONSUMPTION", counter, "Energy that the GPU has consumed since the agent started in millijoules.", 1000, nil},
		{"PCIE_REPLAY_COUNTER", counter, "Packets that were sent again over the PCI Express link.", 1, []string{"pci/replay_counter"}},
		{"GPU_UTIL", gauge, "Share of time in which the GPU was busy in percent.", percent, []string{"utilization/gpu_util"}},
		{"MEM_COPY_UTIL", gauge, "Share of time in which the memory was busy in percent.", percent, []string{"utilization/memory_util"}},
		{"ENC_UTIL", gauge, "Share of time in which the encoder was busy in percent.", percent, []string{"utilization/encoder_util"}},
		{"DEC_UTIL", gauge, "Share of time in which the decoder was busy in percent.", percent, []string{"utilization/decoder_util"}},
		{"FB_FREE", gauge, "Free memory in MiB.", mebi, []string{"fb_memory_usage/free"}},
		{"FB_USED", gauge, "Used memory in MiB.", mebi, []string{"fb_memory_usage/used"}},
		{"FB_RESERVED", gauge, "Memory in MiB that the driver keeps for itself.", mebi, []string{"fb_memory_usage/reserved"}},
		{"UNCORRECTABLE_REMAPPED_ROWS", counter, "Memory rows that were remapped because of errors that were not corrected.", 1, []string{"remapped_rows/remapped_row_unc"}},
		{"CORRECTABLE_REMAPPED_ROWS", counter, "Memory rows that were remapped because of corrected errors.", 1, []string{"remapped_rows/remapped_row_corr"}},
		{"ROW_REMAP_FAILURE", gauge, "1 if the remapping of memory rows has failed, 0 if not.", 1, []string{"remapped_rows/remapped_row_failure"}},
	}
	families := make([]dcgmFamily, len(all))
	for i, f := range all {
		families[i] = dcgmFamily{probes.Family{Name: "DCGM_FI_DEV_" + f.name, Help: f.help, Type: f.typ}, f.scale, f.paths}
	}
	return families
}

// addDCGM adds the values of a GPU under dcgm-exporter's names, with its labels.
func (p *Probe) addDCGM(r *probes.Round, g *node, driver string, joules float64, metered bool) {
	minor := g.say("minor_number")
	labels := []string{"gpu", minor, "UUID", identity(g), "pci_bus_id", strings.ToUpper(g.id), "device", "nvidia" + minor, "modelName", g.say("product_name"),
		"Hostname", p.hostname, "DCGM_FI_DRIVER_VERSION", driver}
	for i := range p.dcgm {
		f := &p.dcgm[i]
		v, ok := g.number(f.paths...)
		switch word := g.say(f.paths...); {
		case f.paths == nil:
			v, ok = joules, metered
		case word == "Yes" || word == "No":
			v, ok = map[string]float64{"Yes": 1}[word], true
		}
		if ok {
			r.Add(&f.Family, v*f.scale, labels...)
		}
	}
}
