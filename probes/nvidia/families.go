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
		{model.MetricTypeGauge, "gpu_info", "Identity of the GPU; always 1."},
		{model.MetricTypeGauge, "gpus", "Number of GPUs that the probe reads."},
		{model.MetricTypeGauge, "gpu_clock_hertz", "Clock frequency, present and highest (max_…)."},
		{model.MetricTypeGauge, "gpu_performance_state", "Performance state: 0 is the highest, 15 the lowest."},
		{model.MetricTypeGauge, "gpu_throttle_reason", "1 for each reason that reduces the clocks at present, 0 for the others."},
		{model.MetricTypeCounter, "gpu_throttle_seconds_total", "Time for which the clocks were reduced, by reason."},
		{model.MetricTypeGauge, "gpu_utilization_ratio", "Share of time in which an engine of the GPU was busy, from 0 to 1."},
		{model.MetricTypeGauge, "gpu_bar1_memory_bytes", "Memory that is mapped for the processor (BAR1): total, used and free."},
		{model.MetricTypeGauge, "gpu_ecc_mode", "1 if error correction (ECC) of the memory is on, 0 if not."},
		{model.MetricTypeCounter, "gpu_ecc_errors_total", "Memory errors: volatile since the driver was loaded, aggregate over the GPU's life."},
		{model.MetricTypeGauge, "gpu_retired_pages", "Memory pages that are retired, by cause."},
		{model.MetricTypeGauge, "gpu_remapped_rows", "Memory rows that were remapped, by cause."},
		{model.MetricTypeGauge, "gpu_repair_pending", "1 if a memory repair waits for a reset of the GPU or has failed, 0 if not."},
		{model.MetricTypeGauge, "gpu_temperature_margin_celsius", "Distance of the GPU's temperature from the temperature at which it slows down."},
		{model.MetricTypeGauge, "gpu_power_limit_watts", "Power limits: current, requested, default, min, max."},
		{model.MetricTypeGauge, "gpu_pcie_link_generation", "Generation of the PCI Express link, present and highest."},
		{model.MetricTypeGauge, "gpu_pcie_link_lanes", "Lanes of the PCI Express link, present and highest number."},
		{model.MetricTypeCounter, "gpu_pcie_replays_total", "Packets that were sent again over the PCI Express link."},
		{model.MetricTypeGauge, "gpu_pcie_throughput_bytes_per_second", "Throughput of the PCI Express link within the last 20 ms, in bytes per second."},
		{model.MetricTypeGauge, "gpu_encoder_sessions", "Number of sessions of the video encoder."},
		{model.MetricTypeGauge, "gpu_mig_mode", "1 if the GPU is divided into instances (MIG), 0 if not."},
		{model.MetricTypeGauge, "gpu_mig_multiprocessors", "Number of multiprocessors of the instance."},
		{model.MetricTypeGauge, "gpu_nvlink_speed_bytes_per_second", "Speed of the NVLink; 0 if it is inactive."},
		{model.MetricTypeCounter, "gpu_nvlink_errors_total", "Errors of the NVLink."},
		{model.MetricTypeGauge, "gpu_process_memory_bytes", "GPU memory that the process uses."},
	} {
		f[row.name] = &probes.Family{Name: "nvidia_" + row.name, Help: row.help, Type: row.typ}
	}
	return f
}
