package host

import (
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"hwsagent/probes/hw"
)

var (
	received    = []string{"network_io_direction", "receive"}
	transmitted = []string{"network_io_direction", "transmit"}
)

// newHardwareNetwork reads the ports of network, Fibre Channel and InfiniBand adapters.
func newHardwareNetwork(e *environment) reader {
	p, exclude := newPlaces(e.SysPath), e.pattern(&e.NetclassExclude)
	return e.hardware(
		hardwareClass{e.sys("class/net"), func(name string) bool { return !exclude.MatchString(name) }, p.networkPort},
		hardwareClass{e.sys("class/fc_host"), nil, p.fibreChannel},
		hardwareClass{e.sys("class/infiniband"), nil, p.infinibandPorts},
	)
}

// netID returns the ID of the network device with this directory: the place of its adapter, and which of the adapter's
// ports it is. The address is not suitable: all links of a bond show the bond's.
func (p places) netID(dir string) string {
	id := orPlace("", p.of(dir+"/device"))
	if port := text(dir + "/dev_port"); port != "" && id != "" {
		id += "/port" + port
	}
	return id
}

// networkPort reads one port; virtual devices (bridges, VLANs, tunnels) have no device behind them, and a virtual function of SR-IOV is a share of
// a port.
func (p places) networkPort(dir string) []hw.Report {
	name := filepath.Base(dir)
	if _, err := os.Stat(dir + "/device"); err != nil {
		return nil
	}
	if unix.Access(dir+"/device/physfn", unix.F_OK) == nil {
		return nil
	}
	address := text(dir + "/bonding_slave/perm_hwaddr")
	if address == "" {
		address = text(dir + "/address")
	}
	port := hw.Report{Component: hw.Component{Kind: hw.Network, ID: p.netID(dir), Name: name, Parent: enclosureID, Facts: []string{
		hw.DriverName, linkName(dir + "/device/driver"), hw.PhysicalAddress, address, hw.Device, name}}}
	if port.ID == "" {
		port.ID = "mac:" + address
	}
	state := text(dir + "/operstate")
	port.Add(hw.NetworkUp, boolean(state == "up"))
	switch state {
	case "up":
		port.Status = hw.OK
	case "lowerlayerdown", "testing", "dormant":
		port.Status = hw.Degraded
	default: // down, unknown, notpresent: a port without a cable is not faulty
		port.Status = hw.Unknown
	}
	if megabits, ok := number(dir + "/speed"); ok && megabits > 0 && megabits < 1<<31 { // -1: not known
		port.Add(hw.NetworkBandwidthLimit, megabits*1e6/8)
	}
	for _, c := range [...]struct {
		file       string
		metric     hw.Metric
		attributes []string
	}{
		{"rx_bytes", hw.NetworkIO, received}, {"tx_bytes", hw.NetworkIO, transmitted},
		{"rx_packets", hw.NetworkPackets, received}, {"tx_packets", hw.NetworkPackets, transmitted},
		{"rx_errors", hw.Errors, received}, {"tx_errors", hw.Errors, transmitted},
	} {
		if v, ok := number(dir + "/statistics/" + c.file); ok {
			port.Add(c.metric, v, c.attributes...)
		}
	}
	return []hw.Report{port}
}

// linkName returns the last element of a link's target.
func linkName(path string) string {
	to, err := os.Readlink(path)
	if err != nil {
		return ""
	}
	return filepath.Base(to)
}

// fibreChannel reads a port of Fibre Channel (the kernel's drivers/scsi/scsi_transport_fc.c).
func (p places) fibreChannel(dir string) []hw.Report {
	name, wwpn := filepath.Base(dir), text(dir+"/port_name")
	port := hw.Report{Component: hw.Component{Kind: hw.Network, ID: hw.DiskID(wwpn, "", ""), Name: name, Parent: enclosureID, Facts: []string{
		hw.Model, text(dir + "/symbolic_name"), hw.PhysicalAddress, wwpn, hw.Device, name}}}
	if port.ID == "" {
		port.ID = orPlace("", p.of(dir+"/device"))
	}
	state := text(dir + "/port_state")
	port.Add(hw.NetworkUp, boolean(state == "Online"))
	switch state {
	case "Online":
		port.Status = hw.OK
	case "Error", "Loopback", "Diagnostics", "Bypassed":
		port.Status = hw.Degraded
	default: // Linkdown, Offline, Blocked, Deleted, Unknown: not faulty, as for other ports
		port.Status = hw.Unknown
	}
	if gigabits, ok := leading(text(dir+"/speed"), " "); ok { // 16 Gbit
		port.Add(hw.NetworkBandwidthLimit, gigabits*1e9/8)
	}
	for _, c := range [...]struct {
		file       string
		metric     hw.Metric
		scale      float64
		attributes []string
	}{
		{"rx_words", hw.NetworkIO, 4, received}, {"tx_words", hw.NetworkIO, 4, transmitted},
		{"rx_frames", hw.NetworkPackets, 1, received}, {"tx_frames", hw.NetworkPackets, 1, transmitted},
		{"error_frames", hw.Errors, 1, []string{"error_type", "frame"}}, {"invalid_crc_count", hw.Errors, 1, []string{"error_type", "crc"}},
		{"link_failure_count", hw.Errors, 1, []string{"error_type", "link_failure"}}, {"loss_of_sync_count", hw.Errors, 1, []string{"error_type", "loss_of_sync"}},
		{"loss_of_signal_count", hw.Errors, 1, []string{"error_type", "loss_of_signal"}},
	} {
		// All ones mean that the adapter does not support the counter.
		if v, ok := number(dir + "/statistics/" + c.file); ok && v < 1<<63 {
			port.Add(c.metric, v*c.scale, c.attributes...)
		}
	}
	return []hw.Report{port}
}

// infinibandPorts reads an adapter. Its Ethernet ports are network devices, which are read above.
func (p places) infinibandPorts(dir string) []hw.Report {
	name := filepath.Base(dir)
	ports, err := list(dir + "/ports")
	if err != nil {
		return nil
	}
	adapter := hw.DiskID(strings.ReplaceAll(text(dir+"/node_guid"), ":", ""), "", "")
	if adapter == "" {
		adapter = orPlace("", p.of(dir+"/device"))
	}
	if adapter == "" {
		adapter = "infiniband:" + name
	}
	var found []hw.Report
	for _, number := range ports {
		at := dir + "/ports/" + number
		if text(at+"/link_layer") == "Ethernet" {
			continue
		}
		found = append(found, infinibandPort(at, name+"/"+number, adapter+"/port"+number, texts(dir,
			hw.Model, "hca_type", hw.Firmware, "fw_ver")))
	}
	return found
}

func infinibandPort(dir, name, id string, facts []string) hw.Report {
	device, _, _ := strings.Cut(name, "/")
	port := hw.Report{Component: hw.Component{Kind: hw.Network, ID: id, Name: name, Parent: enclosureID, Facts: append(facts, hw.Device, device)}}
	state, ok := leading(text(dir+"/state"), ":") // 4: ACTIVE
	if ok {
		port.Add(hw.NetworkUp, boolean(state == 4))
		port.Status = hw.Unknown
		switch state {
		case 4:
			port.Status = hw.OK
		case 2, 3, 5: // initialising, armed, about to become active
			port.Status = hw.Degraded
		}
	}
	if gigabits, ok := leading(text(dir+"/rate"), " "); ok { // 100 Gb/sec (4X EDR)
		port.Add(hw.NetworkBandwidthLimit, gigabits*1e9/8)
	}
	for _, c := range [...]struct {
		file       string
		metric     hw.Metric
		scale      float64
		attributes []string
	}{
		{"port_rcv_data", hw.NetworkIO, 4, received}, {"port_xmit_data", hw.NetworkIO, 4, transmitted}, // words of four bytes
		{"port_rcv_packets", hw.NetworkPackets, 1, received}, {"port_xmit_packets", hw.NetworkPackets, 1, transmitted},
		{"port_rcv_errors", hw.Errors, 1, []string{"error_type", "receive"}}, {"symbol_error", hw.Errors, 1, []string{"error_type", "symbol"}},
		{"link_downed", hw.Errors, 1, []string{"error_type", "link_downed"}}, {"link_error_recovery", hw.Errors, 1, []string{"error_type", "link_recovery"}},
	} {
		if v, ok := number(dir + "/counters/" + c.file); ok {
			port.Add(c.metric, v*c.scale, c.attributes...)
		}
	}
	return port
}
