package snmp

import (
	"slices"
	"strings"
)

// ifModule is IF-MIB (RFC 2863): interfaces and their 64-bit counters. Every series
// carries the interface's index and its three names.
var ifModule = module{
	walk: []string{"1.3.6.1.2.1.2", "1.3.6.1.2.1.31.1.1"},
	metrics: slices.Concat(
		table("1.3.6.1.2.1.2", nil, nil,
			column{"1", "ifNumber", typeGauge, "Number of interfaces."}),
		withEnum(table("1.3.6.1.2.1.2.2.1", ifIndexes, ifLookups,
			column{"1", "ifIndex", typeGauge, "The interface's number."},
			column{"3", "ifType", typeEnumAsInfo, "The kind of interface, by IANA's list."},
			column{"4", "ifMtu", typeGauge, "Size of the largest packet in octets."},
			column{"5", "ifSpeed", typeGauge, "Bandwidth in bits per second, 4294967295 if it is more; see ifHighSpeed."},
			column{"6", "ifPhysAddress", typePhysAddress, "The hardware address."},
			column{"7", "ifAdminStatus", typeGauge, "The configured state: 1 up, 2 down, 3 testing."},
			column{"8", "ifOperStatus", typeGauge, "The actual state: 1 up, 2 down, 3 testing, 4 unknown, 5 dormant, 6 not present, 7 lower layer down."},
			column{"9", "ifLastChange", typeGauge, "sysUpTime when the interface came into its state."},
			column{"10", "ifInOctets", typeCounter, "Octets received; wraps at 2^32, see ifHCInOctets."},
			column{"11", "ifInUcastPkts", typeCounter, "Unicast packets received."},
			column{"12", "ifInNUcastPkts", typeCounter, "Broadcast and multicast packets received (deprecated)."},
			column{"13", "ifInDiscards", typeCounter, "Received packets without errors that were dropped, for example for lack of buffers."},
			column{"14", "ifInErrors", typeCounter, "Packets received with errors."},
			column{"15", "ifInUnknownProtos", typeCounter, "Received packets that were dropped because of an unknown protocol."},
			column{"16", "ifOutOctets", typeCounter, "Octets sent; wraps at 2^32, see ifHCOutOctets."},
			column{"17", "ifOutUcastPkts", typeCounter, "Unicast packets sent."},
			column{"18", "ifOutNUcastPkts", typeCounter, "Broadcast and multicast packets sent (deprecated)."},
			column{"19", "ifOutDiscards", typeCounter, "Outgoing packets without errors that were dropped."},
			column{"20", "ifOutErrors", typeCounter, "Packets not sent because of errors."},
			column{"21", "ifOutQLen", typeGauge, "Packets in the output queue (deprecated)."},
			column{"22", "ifSpecific", typeOctetString, "Reference to a MIB for the kind of interface (deprecated)."},
		), "ifType", numbered(ianaIfTypeNames)),
		table("1.3.6.1.2.1.31.1.1.1", ifIndexes, ifLookups,
			column{"2", "ifInMulticastPkts", typeCounter, "Multicast packets received."},
			column{"3", "ifInBroadcastPkts", typeCounter, "Broadcast packets received."},
			column{"4", "ifOutMulticastPkts", typeCounter, "Multicast packets sent."},
			column{"5", "ifOutBroadcastPkts", typeCounter, "Broadcast packets sent."},
			column{"6", "ifHCInOctets", typeCounter, "Octets received (64 bits)."},
			column{"7", "ifHCInUcastPkts", typeCounter, "Unicast packets received (64 bits)."},
			column{"8", "ifHCInMulticastPkts", typeCounter, "Multicast packets received (64 bits)."},
			column{"9", "ifHCInBroadcastPkts", typeCounter, "Broadcast packets received (64 bits)."},
			column{"10", "ifHCOutOctets", typeCounter, "Octets sent (64 bits)."},
			column{"11", "ifHCOutUcastPkts", typeCounter, "Unicast packets sent (64 bits)."},
			column{"12", "ifHCOutMulticastPkts", typeCounter, "Multicast packets sent (64 bits)."},
			column{"13", "ifHCOutBroadcastPkts", typeCounter, "Broadcast packets sent (64 bits)."},
			column{"14", "ifLinkUpDownTrapEnable", typeGauge, "Whether traps are sent for link changes: 1 yes, 2 no."},
			column{"15", "ifHighSpeed", typeGauge, "Bandwidth in millions of bits per second."},
			column{"16", "ifPromiscuousMode", typeGauge, "Whether the interface accepts all packets: 1 yes, 2 no."},
			column{"17", "ifConnectorPresent", typeGauge, "Whether there is a physical connector: 1 yes, 2 no."},
			column{"19", "ifCounterDiscontinuityTime", typeGauge, "sysUpTime when a counter last lost its count."},
		),
	),
}

var (
	ifIndexes = []index{{labelname: "ifIndex", typ: typeGauge}}
	ifLookups = []lookup{
		{labels: []string{"ifIndex"}, labelname: "ifAlias", oid: "1.3.6.1.2.1.31.1.1.1.18", typ: typeDisplayString},
		{labels: []string{"ifIndex"}, labelname: "ifDescr", oid: "1.3.6.1.2.1.2.2.1.2", typ: typeDisplayString},
		{labels: []string{"ifIndex"}, labelname: "ifName", oid: "1.3.6.1.2.1.31.1.1.1.1", typ: typeDisplayString},
	}
)

// numbered numbers the words of s from 1 on; "-" skips a number.
func numbered(s string) map[int]string {
	m := make(map[int]string)
	for i, w := range strings.Fields(s) {
		if w != "-" {
			m[i+1] = w
		}
	}
	return m
}
