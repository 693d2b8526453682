package host

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"hwsagent/probes/hw"
)

// firmwareModule begins the ID of each memory module that only the firmware describes.
const firmwareModule = "dimm:"

// oneOfEach joins the memory modules of EDAC's drivers with those of the firmware, because both describe the same modules. A module of EDAC gets
// vendor, model and serial number of the firmware's one with the same label or position. The other modules of the firmware are components of their
// own. Then the other modules of EDAC report errors but no size, so that each module counts once in a sum of sizes.
func oneOfEach(all []hw.Report) []hw.Report {
	var edac, firmware []hw.Report
	for _, p := range all {
		if strings.HasPrefix(p.ID, firmwareModule) {
			firmware = append(firmware, p)
		} else {
			edac = append(edac, p)
		}
	}
	pairs := byLabel(edac, firmware)
	if len(pairs) == 0 {
		pairs = byPosition(edac, firmware)
	}
	joined := make(map[int]bool) // modules of the firmware
	for i, j := range pairs {
		edac[i].Facts = append(edac[i].Facts, firmware[j].Facts[:identityFacts]...)
		joined[j] = true
	}
	var rest []hw.Report
	for j := range firmware {
		if !joined[j] {
			rest = append(rest, firmware[j])
		}
	}
	sized := func(p hw.Report) bool { return sizeOf(&p) > 0 }
	unpaired := false // a module of EDAC with a size that the firmware's modules do not have
	for i := range edac {
		_, known := pairs[i]
		unpaired = unpaired || !known && sized(edac[i])
	}
	if unpaired && slices.ContainsFunc(rest, func(p hw.Report) bool { return !sized(p) }) {
		rest = nil // the firmware does not know all sizes: those of EDAC count
	}
	for i := range edac {
		if _, known := pairs[i]; !known && len(rest) > 0 {
			edac[i].Readings = slices.DeleteFunc(edac[i].Readings, func(r hw.Reading) bool { return r.Metric == hw.MemorySize })
		}
	}
	return append(edac, rest...)
}

// sizeOf returns the size of a module in bytes; 0 if unknown.
func sizeOf(p *hw.Report) float64 {
	for _, r := range p.Readings {
		if r.Metric == hw.MemorySize {
			return r.Value
		}
	}
	return 0
}

// byLabel returns for modules of EDAC the firmware's module with the same label: the locator, or like ghes_edac bank and locator. A label of
// several modules of EDAC says nothing.
func byLabel(edac, firmware []hw.Report) map[int]int {
	const several = -1
	labels := make(map[string]int) // indices in edac
	for i, p := range edac {
		if p.Parent == enclosureID || p.Name == "" { // a controller
			continue
		}
		label := strings.ToLower(joined(p.Name))
		if _, twice := labels[label]; twice {
			labels[label] = several
		} else {
			labels[label] = i
		}
	}
	pairs := make(map[int]int)
	for j, p := range firmware {
		for _, label := range [...]string{joined(p.Name), strings.TrimPrefix(p.ID, firmwareModule)} {
			label = strings.ToLower(label)
			if i, ok := labels[label]; ok && i != several {
				pairs[i], labels[label] = j, several
				break
			}
		}
	}
	return pairs
}

// position is the place of a memory module; all numbers begin at 0.
type position struct {
	socket, channel, slot int
	controller            int // of the socket, or its NUMA node
}

// driverForms are the labels of EDAC's drivers that name a position: skx_edac, i10nm_edac and sb_edac; i7core_edac; igen6_edac. Labels such as
// mc#0csrow#1channel#0 do not: a row is a rank, not a slot.
var driverForms = []*regexp.Regexp{
	regexp.MustCompile(`^CPU_SrcID#(?P<socket>\d+)_(?:MC|Ha)#(?P<controller>\d+)_Chan#(?P<channel>\d+)_DIMM#(?P<slot>\d+)$`),
	regexp.MustCompile(`^CPU#(?P<socket>\d+)Channel#(?P<channel>\d+)_DIMM#(?P<slot>\d+)$`),
	regexp.MustCompile(`^MC#(?P<controller>\d+)_Chan#(?P<channel>\d+)_DIMM#(?P<slot>\d+)$`),
}

// firmwareForms are the banks and locators of firmware that name a position, with an underscore for each blank: of Supermicro's and other boards
// with American Megatrends' firmware, and of Intel's reference firmware for clients. The bank is in front of the locator.
var firmwareForms = []*regexp.Regexp{
	regexp.MustCompile(`(?i)^P(?P<socket>\d+)_Node(?P<controller>\d+)_Channel_?(?P<channel>\d+)_Dimm_?(?P<slot>\d+)(?:_|$)`),
	regexp.MustCompile(`(?i)^_?Node_?(?P<socket>\d+)_Channel_?(?P<channel>\d+)_Dimm_?(?P<slot>\d+)(?:_|$)`),
	regexp.MustCompile(`(?i)(?:^|_)Controller(?P<controller>\d+)-Channel(?P<letter>[A-H])-DIMM(?P<slot>\d+)$`),
	regexp.MustCompile(`(?i)(?:^|_)Channel(?P<letter>[A-H])-DIMM(?P<slot>\d+)$`),
}

// positionIn returns the position that a text of one of these forms names.
func positionIn(text string, forms []*regexp.Regexp) (position, bool) {
	for _, form := range forms {
		found := form.FindStringSubmatch(text)
		if found == nil {
			continue
		}
		var at position
		for i, name := range form.SubexpNames() {
			n, err := strconv.Atoi(found[i])
			switch name {
			case "":
				continue
			case "letter":
				at.channel = int(strings.ToUpper(found[i])[0] - 'A')
				continue
			case "socket":
				at.socket = n
			case "controller":
				at.controller = n
			case "channel":
				at.channel = n
			case "slot":
				at.slot = n
			}
			if err != nil {
				return position{}, false
			}
		}
		return at, true
	}
	return position{}, false
}

// placed is a module with its position.
type placed struct {
	position
	index int
	size  float64
}

// byPosition returns for modules of EDAC the firmware's module at the same position. Drivers count the channels of each controller, firmware those
// of the socket or of a NUMA node. So only the order of the channels is the same, and the order decides, if it cannot be wrong: both must have the
// same number of modules, each in the same socket and slot of its channel and of the same size as its counterpart.
func byPosition(edac, firmware []hw.Report) map[int]int {
	drivers := inOrder(edac, driverForms, func(p *hw.Report) string { return p.Name })
	slots := inOrder(firmware, firmwareForms, func(p *hw.Report) string { return strings.TrimPrefix(p.ID, firmwareModule) })
	if len(drivers) != len(slots) {
		return nil
	}
	pairs := make(map[int]int)
	for i, d := range drivers {
		s := slots[i]
		again := i > 0 && (d.position == drivers[i-1].position || s.position == slots[i-1].position)
		if again || d.socket != s.socket || d.slot != s.slot || d.size != s.size {
			return nil
		}
		pairs[d.index] = s.index
	}
	return pairs
}

// inOrder returns the modules whose text names a position, in the order of sockets, controllers, channels and slots.
func inOrder(all []hw.Report, forms []*regexp.Regexp, text func(*hw.Report) string) []placed {
	var found []placed
	for i := range all {
		if at, ok := positionIn(text(&all[i]), forms); ok {
			found = append(found, placed{position: at, index: i, size: sizeOf(&all[i])})
		}
	}
	slices.SortFunc(found, func(a, b placed) int {
		return cmp.Or(a.socket-b.socket, a.controller-b.controller, a.channel-b.channel, a.slot-b.slot)
	})
	return found
}
