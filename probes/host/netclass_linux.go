package host

import (
	"context"
	"strings"

	"golang.org/x/sys/unix"

	"hwsagent/probes"
)

// newNetclass reads the network devices from sysfs. Reading their speed takes a lock that a hung driver may hold.
func newNetclass(e *environment) reader {
	property := func(file, name, help string) attr { return attr{file, gauge("node_network_"+name, help), 0} }
	attrs := []attr{
		property("addr_assign_type", "address_assign_type", "How the device got its address."),
		property("carrier", "carrier", "Whether the link is there."),
		{"carrier_changes", counter("node_network_carrier_changes_total", "How often the link came or went."), 0},
		{"carrier_up_count", counter("node_network_carrier_up_changes_total", "How often the link came."), 0},
		{"carrier_down_count", counter("node_network_carrier_down_changes_total", "How often the link went."), 0},
		property("dev_id", "device_id", "Tells devices apart that share an address."),
		property("dormant", "dormant", "Whether the device waits for something, as 802.1X."),
		property("ifindex", "iface_id", "The device's index."),
		property("iflink", "iface_link", "Index of the device below this one."),
		property("link_mode", "iface_link_mode", "The device's link mode."),
		property("mtu", "mtu_bytes", "Largest packet."),
		property("name_assign_type", "name_assign_type", "How the device got its name."),
		property("netdev_group", "net_dev_group", "The device's group."),
		property("tx_queue_len", "transmit_queue_length", "Length of the transmit queue, in packets."),
		property("type", "protocol_type", "The device's ARP protocol type."),
	}
	flags := gauge("node_network_flags", "The device's flags.")
	speed := gauge("node_network_speed_bytes", "The device's speed, in bytes per second; negative if it is not known.")
	up := gauge("node_network_up", "Whether the device is operational.")
	info := gauge("node_network_info", "What the device is; always 1.")

	exclude := e.pattern(&e.NetclassExclude)
	d := &devices{dir: e.sys("class/net"), guard: guard[samples]{limit: e.limit, panics: e.panics}}
	d.wanted = func(name string) bool { return !exclude.MatchString(name) }
	d.query = func(name string) samples {
		var s samples
		dir := d.dir + "/" + name
		device := []string{"device", name}
		s.addAttrs(dir, attrs, device...)
		admin := "unknown"
		if v, ok := number(dir + "/flags"); ok {
			s.add(flags, v, device...)
			admin = "down"
			if int64(v)&unix.IFF_UP != 0 {
				admin = "up"
			}
		}
		if v, ok := number(dir + "/speed"); ok {
			s.add(speed, v*1000*1000/8, device...) // megabits
		}
		operstate := text(dir + "/operstate")
		s.add(up, boolean(operstate == "up"), device...)
		s.add(info, 1, append([]string{"device", name, "adminstate", admin, "operstate", operstate},
			texts(dir, "address", "address", "broadcast", "broadcast", "duplex", "duplex", "ifalias", "ifalias")...)...)
		return s
	}
	return d
}

// bonding counts the links of bonded devices.
type bonding struct {
	dir            string
	slaves, active *probes.Family
}

func newBonding(e *environment) reader {
	return &bonding{
		dir:    e.sys("class/net"),
		slaves: gauge("node_bonding_slaves", "Links of the bonded device."),
		active: gauge("node_bonding_active", "Links of the bonded device that are up."),
	}
}

func (b *bonding) read(_ context.Context, r *probes.Round) error {
	masters, err := attribute(b.dir + "/bonding_masters")
	if err != nil {
		return optional(err)
	}
	for master := range strings.FieldsSeq(masters) {
		dir := b.dir + "/" + master
		slaves, active := 0, 0
		for slave := range strings.FieldsSeq(text(dir + "/bonding/slaves")) {
			slaves++
			status := text(dir + "/lower_" + slave + "/bonding_slave/mii_status")
			if status == "" { // before Linux 3.13
				status = text(dir + "/slave_" + slave + "/bonding_slave/mii_status")
			}
			if status == "up" {
				active++
			}
		}
		r.Add(b.slaves, float64(slaves), "master", master)
		r.Add(b.active, float64(active), "master", master)
	}
	return nil
}
