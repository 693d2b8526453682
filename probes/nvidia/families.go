package nvidia

import (
	"github.com/prometheus/common/model"

	"hwsagent/probes"
)

// families are the families of nvidia-smi's values that have no place in hw_*.
type families map[string]*probes.Family

func newFamilies() families {
	f := make(families)
	for _, row := range [...]struct {
		typ        model.MetricType
		name, help string
	}{
		{model.MetricTypeGauge, "driver_info", "Versions of the driver and of CUDA; always 1."},
		{model.MetricTypeGauge, "gpu_info", "What the GPU is; always 1."},
		{model.MetricTypeGauge, "gpus", "GPUs that are read."},
		{model.MetricTypeGauge, "gpu_clock_hertz", "Clock at present, and the highest (max_…)."},
		{model.MetricTypeGauge, "gpu_performance_state", "Performance state: 0 is the highest, 15 the lowest."},
		{model.MetricTypeGauge, "gpu_throttle_reason", "1 for each reason for which the clocks are below their highest at present, 0 for the others."},
		{model.MetricTypeCounter, "gpu_throttle_seconds_total", "Time that the clocks were lowered, by reason."},
		{model.MetricTypeGauge, "gpu_utilization_ratio", "Part of the time in which an engine of the GPU works."},
		{model.MetricTypeGauge, "gpu_bar1_memory_bytes", "Size of the memory that is mapped for the processor, and what of it is in use."},
		{model.MetricTypeGauge, "gpu_ecc_mode", "Whether errors in memory are corrected (1)."},
		{model.MetricTypeCounter, "gpu_ecc_errors_total", "Errors in memory: volatile since the driver was loaded, aggregate ever."},
		{model.MetricTypeGauge, "gpu_retired_pages", "Pages of memory that are out of use, by cause."},
		{model.MetricTypeGauge, "gpu_remapped_rows", "Rows of memory that were replaced, by cause."},
		{model.MetricTypeGauge, "gpu_repair_pending", "Whether a repair of memory waits for a reset of the GPU (1), or failed."},
		{model.MetricTypeGauge, "gpu_temperature_margin_celsius", "How far the GPU's temperature is below that at which it slows down."},
		{model.MetricTypeGauge, "gpu_power_limit_watts", "Limits of power: current, requested, default, min, max."},
		{model.MetricTypeGauge, "gpu_pcie_link_generation", "Generation of the PCI Express link, at present and the highest."},
		{model.MetricTypeGauge, "gpu_pcie_link_lanes", "Lanes of the PCI Express link, at present and the most."},
		{model.MetricTypeCounter, "gpu_pcie_replays_total", "Packets that were sent again over PCI Express."},
		{model.MetricTypeGauge, "gpu_pcie_throughput_bytes_per_second", "Bytes per second over PCI Express, within the last 20 ms."},
		{model.MetricTypeGauge, "gpu_encoder_sessions", "Sessions of the video encoder."},
		{model.MetricTypeGauge, "gpu_mig_mode", "Whether the GPU is divided into instances (1)."},
		{model.MetricTypeGauge, "gpu_mig_multiprocessors", "Multiprocessors of an instance."},
		{model.MetricTypeGauge, "gpu_nvlink_speed_bytes_per_second", "Speed of an NVLink; 0 if it is inactive."},
		{model.MetricTypeCounter, "gpu_nvlink_errors_total", "Errors of an NVLink."},
		{model.MetricTypeGauge, "gpu_process_memory_bytes", "Memory of the GPU that a process uses."},
	} {
		f[row.name] = &probes.Family{Name: "nvidia_" + row.name, Help: row.help, Type: row.typ}
	}
	return f
}
