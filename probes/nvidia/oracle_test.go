//go:build linux

package nvidia

import (
	"encoding/xml"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"hwsagent/probes"
)

// places says for the numbers of a <gpu>, by their path, as which series each must come out: the name and labels, of which ID is the
// GPU's UUID and MIG the two numbers of an instance. A number that must come out twice is there twice.
var places = []struct{ path, series string }{
	{`temperature/(gpu|memory)_temp`, `hw_temperature_celsius hw_id=gpu:ID hw_sensor_location=$1`},
	{`temperature/gpu_temp_slow_threshold`, `hw_temperature_limit_celsius hw_id=gpu:ID hw_sensor_location=gpu hw_limit_type=high.degraded`},
	{`temperature/gpu_temp_max_threshold`, `hw_temperature_limit_celsius hw_id=gpu:ID hw_sensor_location=gpu hw_limit_type=high.critical`},
	{`temperature/gpu_temp_max_mem_threshold`, `hw_temperature_limit_celsius hw_id=gpu:ID hw_sensor_location=memory hw_limit_type=high.critical`},
	{`temperature/gpu_temp_tlimit`, `nvidia_gpu_temperature_margin_celsius uuid=ID`},
	{`(?:gpu_)?power_readings/(?:instant_)?power_draw`, `hw_power_watts hw_id=gpu:ID`},
	{`gpu_power_readings/current_power_limit|power_readings/enforced_power_limit`, `hw_power_limit_watts hw_id=gpu:ID hw_limit_type=max`},
	{`gpu_power_readings/current_power_limit|power_readings/enforced_power_limit`, `nvidia_gpu_power_limit_watts uuid=ID kind=current`},
	{`gpu_power_readings/requested_power_limit|power_readings/power_limit`, `nvidia_gpu_power_limit_watts uuid=ID kind=requested`},
	{`(?:gpu_)?power_readings/(default|min|max)_power_limit`, `nvidia_gpu_power_limit_watts uuid=ID kind=$1`},
	{`voltage/graphics_volt`, `hw_voltage_volts hw_id=gpu:ID`},
	{`fan_speed`, `hw_fan_speed_ratio hw_id=gpu:ID/fan`},
	{`fb_memory_usage/total`, `hw_gpu_memory_limit_bytes hw_id=gpu:ID`},
	{`fb_memory_usage/used`, `hw_gpu_memory_usage_bytes hw_id=gpu:ID`},
	{`bar1_memory_usage/(total|used)`, `nvidia_gpu_bar1_memory_bytes uuid=ID kind=$1`},
	{`utilization/gpu_util`, `hw_gpu_utilization_ratio hw_id=gpu:ID hw_gpu_task=general`},
	{`utilization/(encoder|decoder)_util`, `hw_gpu_utilization_ratio hw_id=gpu:ID hw_gpu_task=$1`},
	{`utilization/(gpu|memory|encoder|decoder|jpeg|ofa)_util`, `nvidia_gpu_utilization_ratio uuid=ID engine=$1`},
	{`clocks/(graphics|sm|mem|video)_clock`, `nvidia_gpu_clock_hertz uuid=ID clock=$1`},
	{`max_clocks/(graphics|sm|mem|video)_clock`, `nvidia_gpu_clock_hertz uuid=ID clock=max_$1`},
	{`ecc_errors/volatile/(\w+)`, `hw_errors_total hw_id=gpu:ID error_type=ecc_$1`},
	{`ecc_errors/(volatile|aggregate)/(\w+)`, `nvidia_gpu_ecc_errors_total uuid=ID scope=$1 kind=$2`},
	{`retired_pages/(?:multiple_)?(single|double)_bit_retirement/retired_count`, `nvidia_gpu_retired_pages uuid=ID cause=$1_bit`},
	{`remapped_rows/remapped_row_corr`, `nvidia_gpu_remapped_rows uuid=ID cause=correctable`},
	{`remapped_rows/remapped_row_unc`, `nvidia_gpu_remapped_rows uuid=ID cause=uncorrectable`},
	{`pci/pci_gpu_link_info/pcie_gen/(current|max)_link_gen`, `nvidia_gpu_pcie_link_generation uuid=ID kind=$1`},
	{`pci/pci_gpu_link_info/link_widths/(current|max)_link_width`, `nvidia_gpu_pcie_link_lanes uuid=ID kind=$1`},
	{`pci/replay_counter`, `nvidia_gpu_pcie_replays_total uuid=ID`},
	{`pci/tx_util`, `nvidia_gpu_pcie_throughput_bytes_per_second uuid=ID direction=transmit`},
	{`pci/rx_util`, `nvidia_gpu_pcie_throughput_bytes_per_second uuid=ID direction=receive`},
	{`encoder_stats/session_count`, `nvidia_gpu_encoder_sessions uuid=ID`},
	{`clocks_event_reasons_counters/clocks_event_reasons_counters_(\w+)`, `nvidia_gpu_throttle_seconds_total uuid=ID reason=$1`},
	{`mig_devices/mig_device/fb_memory_usage/total`, `hw_gpu_memory_limit_bytes hw_id=gpu:ID/mig:MIG`},
	{`mig_devices/mig_device/fb_memory_usage/used`, `hw_gpu_memory_usage_bytes hw_id=gpu:ID/mig:MIG`},
	{`mig_devices/mig_device/device_attributes/shared/multiprocessor_count`, `nvidia_gpu_mig_multiprocessors uuid=ID mig=MIG`},
}

// unread are the numbers that come out as no series, with the reason.
var unread = map[string]string{
	"names, versions and places":                                         `serial|minor_number|vbios_version|gpu_module_id|inforom_version/.*|gsp_firmware_version|platformInfo/.*|pci/pci_(bus|device|domain|base_class|sub_class|sub_system_id)|mig_devices/mig_device/(index|gpu_instance_id|compute_instance_id)`,
	"follow from what is read":                                           `(fb|bar1)_memory_usage/(free|reserved)`,
	"settings and what may be set; nothing that is measured":             `accounting_mode_buffer_size|(default_)?applications_clocks/.*|max_customer_boost_clocks/.*|supported_clocks/.*|supported_gpu_target_temp/.*|temperature/gpu_target_temperature`,
	"limits of the two ends of the link, of which the lower one is read": `pci/pci_gpu_link_info/pcie_gen/(device_current|max_device|max_host)_link_gen`,
	"limits of the margin, and of what slows down without harm":          `temperature/gpu_temp_max(_gpu_threshold|_tlimit_threshold|_gpu_tlimit_threshold)|temperature/gpu_temp_slow_tlimit_threshold`,
	"the power of this moment is read":                                   `gpu_power_readings/average_power_draw`,
	"of single sessions":                                                 `(encoder|fbc)_stats/average_(fps|latency)|fbc_stats/session_count`,
	"counts how often the counter of replays began again":                `pci/replay_rollover_counter`,
	"confidential computing, which takes a part of the memory":           `cc_protected_memory_usage/.*`,
	"rows that wait for a reset, which is read as a repair that waits":   `remapped_rows/remapped_row_(corr|unc)_inactive`,
	"of instances: parts of what the whole GPU says":                     `mig_devices/mig_device/(bar1_memory_usage/.*|ecc_error_count/.*|fb_memory_usage/(free|reserved)|device_attributes/shared/(copy_engine|encoder|decoder|ofa|jpg)_count)`,
}

// derived are the series of a GPU that are made of several numbers or of words.
var derived = regexp.MustCompile(`^(hw_component_info|hw_status|hw_gpu_memory_utilization_ratio|nvidia_gpus|nvidia_driver_info|nvidia_gpu_(info|performance_state|throttle_reason|ecc_mode|mig_mode|repair_pending))$`)

// element is any element of the XML.
type element struct {
	XMLName xml.Name
	Text    string    `xml:",chardata"`
	Kids    []element `xml:",any"`
}

func (e *element) child(path string) string {
	for name := range strings.SplitSeq(path, "/") {
		i := slices.IndexFunc(e.Kids, func(k element) bool { return k.XMLName.Local == name })
		if i < 0 {
			return ""
		}
		e = &e.Kids[i]
	}
	return strings.TrimSpace(e.Text)
}

// each calls back for each number below the element, with its path and the instance that it is of. Processes are another setting.
func (e *element) each(path, mig string, found func(path, mig, text string)) {
	for i := range e.Kids {
		k := &e.Kids[i]
		below := strings.TrimPrefix(path+"/"+k.XMLName.Local, "/")
		if k.XMLName.Local == "mig_device" {
			mig = k.child("gpu_instance_id") + "/" + k.child("compute_instance_id")
		}
		if below == "processes" {
			continue
		}
		if text := strings.TrimSpace(k.Text); len(k.Kids) == 0 && aNumber.MatchString(text) {
			found(below, mig, text)
		}
		k.each(below, mig, found)
	}
}

var aNumber = regexp.MustCompile(`^(-?[0-9]+(?:\.[0-9]+)?)(x| [A-Za-z/%]+)?$`)

// inBaseUnits is the number of a text as Prometheus' base units have it.
func inBaseUnits(t *testing.T, text string) float64 {
	t.Helper()
	m := aNumber.FindStringSubmatch(text)
	v, err := strconv.ParseFloat(m[1], 64)
	factor, known := map[string]float64{"": 1, "x": 1, " C": 1, " W": 1, " %": 0.01, " MiB": 1 << 20, " MHz": 1e6, " KB/s": 1000, " mV": 1e-3, " us": 1e-6}[m[2]]
	if err != nil || !known {
		t.Errorf("%q: the unit is not known: %v", text, err)
	}
	return v * factor
}

// TestOracle reads all captures that there are: each number of a GPU's comes out as the series that places says, once and with its
// value, or is unread for a reason; and no series comes of nothing.
func TestOracle(t *testing.T) {
	root := os.Getenv("CORPUS")
	if root == "" {
		t.Skip("needs captures of nvidia-smi in CORPUS: run by hand, see internal/tools/README.md")
	}
	files, err := filepath.Glob(filepath.Join(root, "telegraf/plugins/inputs/nvidia_smi/testdata/*.xml"))
	if err != nil || len(files) == 0 {
		t.Skipf("there are no captures of nvidia-smi in %s: %v", root, err)
	}
	values, left := 0, 0
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			n, l := judgeCapture(t, read(t, name))
			values, left = values+n, left+l
		})
	}
	t.Logf("%d captures, %d series equal their numbers, %d numbers are unread for a reason", len(files), values, left)
}

// judgeCapture gives how many series were compared, and how many numbers are unread.
func judgeCapture(t *testing.T, text string) (values, left int) {
	t.Helper()
	_, c := machine(t, text)
	r := probes.NewRound(0)
	if err := newProbe(t, c).Collect(t.Context(), r); err != nil {
		t.Error(err)
	}
	var log element
	d := xml.NewDecoder(strings.NewReader(text))
	d.CharsetReader, d.Strict = nil, false
	if err := d.Decode(&log); err != nil {
		t.Fatal(err)
	}
	explained := make(map[int]bool) // samples, by their place
	for i := range log.Kids {
		gpu := &log.Kids[i]
		if gpu.XMLName.Local != "gpu" {
			continue
		}
		gpu.each("", "", func(path, mig, text string) {
			want, read := inBaseUnits(t, text), 0
			for _, p := range places {
				m := regexp.MustCompile("^(?:" + p.path + ")$")
				if !m.MatchString(path) {
					continue
				}
				series := m.ReplaceAllString(path, strings.NewReplacer("$1", "${1}", "$2", "${2}").Replace(p.series))
				series = strings.NewReplacer("ID", gpu.child("uuid"), "MIG", mig).Replace(series)
				found := matching(r.Samples(), strings.Fields(series))
				if len(found) != 1 || math.Abs(r.Samples()[found[0]].Value-want) > 1e-9*math.Abs(want) {
					t.Errorf("%s is %s: want one %s of %v, there are %s", path, text, series, want, written(r.Samples(), found))
				}
				for _, i := range found {
					explained[i] = true
				}
				values, read = values+1, read+1
			}
			if why := reason(path); (why == "") == (read == 0) {
				t.Errorf("%s is %s: it is read as %d series, and the reason not to is %q", path, text, read, why)
			}
			if read == 0 {
				left++
			}
		})
	}
	for i, s := range r.Samples() {
		if !explained[i] && !derived.MatchString(s.Family.Name) {
			t.Errorf("%s comes of no number", written(r.Samples(), []int{i}))
		}
	}
	return values, left
}

func reason(path string) string {
	for why, pattern := range unread {
		if regexp.MustCompile("^(?:" + pattern + ")$").MatchString(path) {
			return why
		}
	}
	return ""
}

// matching are the samples of that name that have these labels.
func matching(all []probes.Sample, series []string) (found []int) {
	for i, s := range all {
		if s.Family.Name != series[0] {
			continue
		}
		if !slices.ContainsFunc(series[1:], func(want string) bool {
			key, value, _ := strings.Cut(want, "=")
			for j := 0; j < len(s.Labels); j += 2 {
				if s.Labels[j] == key && s.Labels[j+1] == value {
					return false
				}
			}
			return true
		}) {
			found = append(found, i)
		}
	}
	return found
}

func written(all []probes.Sample, which []int) string {
	var out []string
	for _, i := range which {
		out = append(out, fmt.Sprintf("%s%q %v", all[i].Family.Name, all[i].Labels, all[i].Value))
	}
	return "[" + strings.Join(out, ", ") + "]"
}
