package host

import (
	"strings"

	"golang.org/x/sys/unix"
)

// newCPUFreq reads the CPUs' frequencies. Some kernels take 10 ms and more to return a CPU's current one, so the CPUs
// are read concurrently.
func newCPUFreq(e *environment) reader {
	frequency := func(file, name, help string) attr {
		return attr{file, gauge("node_cpu_"+name+"_hertz", help), 0}
	}
	attrs := []attr{
		frequency("cpuinfo_cur_freq", "frequency", "The CPU's frequency as the hardware tells it."),
		frequency("cpuinfo_avg_freq", "frequency_avg", "The CPU's average frequency as the hardware tells it."),
		frequency("cpuinfo_min_freq", "frequency_min", "The CPU's lowest frequency."),
		frequency("cpuinfo_max_freq", "frequency_max", "The CPU's highest frequency."),
		frequency("scaling_cur_freq", "scaling_frequency", "The CPU's frequency as the governor set it."),
		frequency("scaling_min_freq", "scaling_frequency_min", "The lowest frequency that the governor may set."),
		frequency("scaling_max_freq", "scaling_frequency_max", "The highest frequency that the governor may set."),
	}
	governor := gauge("node_cpu_scaling_governor", "1 for the CPU's governor, 0 for the others that it could have.")
	d := &devices{dir: e.sys("devices/system/cpu"), guard: guard[samples]{limit: e.limit, panics: e.panics}}
	d.wanted = func(name string) bool {
		_, ok := unit(name, "cpu")
		return ok && unix.Access(d.dir+"/"+name+"/cpufreq", unix.F_OK) == nil
	}
	d.query = func(name string) samples {
		var s samples
		dir := d.dir + "/" + name + "/cpufreq"
		id, _ := unit(name, "cpu")
		for _, a := range attrs {
			if kHz, ok := number(dir + "/" + a.file); ok {
				s.add(a.Family, kHz*1000, "cpu", id)
			}
		}
		if current := text(dir + "/scaling_governor"); current != "" {
			for g := range strings.FieldsSeq(text(dir + "/scaling_available_governors")) {
				s.add(governor, boolean(g == current), "cpu", id, "governor", g)
			}
		}
		return s
	}
	return d
}
