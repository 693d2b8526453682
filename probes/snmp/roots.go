package snmp

import "strings"

// standardRoots returns the names of the standards' groups and tables that people walk, beside what the built-in modules read: from
// RFC 1213, RFC 2863 (IF-MIB), RFC 4293 (IP-MIB), RFC 2790 (HOST-RESOURCES-MIB), RFC 6933 (ENTITY-MIB), RFC 3433 (ENTITY-SENSOR-MIB),
// RFC 4188 (BRIDGE-MIB), RFC 3635 (EtherLike-MIB), RFC 3621 (POWER-ETHERNET-MIB), RFC 1628 (UPS-MIB), RFC 3805 (Printer-MIB) and
// IEEE 802.1AB (LLDP-MIB).
func standardRoots() map[string]string {
	return map[string]string{
		"iso": "1", "internet": "1.3.6.1", "mgmt": "1.3.6.1.2", "mib-2": "1.3.6.1.2.1", "private": "1.3.6.1.4", "enterprises": "1.3.6.1.4.1",

		"system": "1.3.6.1.2.1.1", "sysDescr": "1.3.6.1.2.1.1.1", "sysObjectID": "1.3.6.1.2.1.1.2", "sysUpTime": "1.3.6.1.2.1.1.3",
		"sysContact": "1.3.6.1.2.1.1.4", "sysName": "1.3.6.1.2.1.1.5", "sysLocation": "1.3.6.1.2.1.1.6", "sysServices": "1.3.6.1.2.1.1.7",
		"sysORTable": "1.3.6.1.2.1.1.9", "snmp": "1.3.6.1.2.1.11",

		"interfaces": "1.3.6.1.2.1.2", "ifNumber": "1.3.6.1.2.1.2.1", "ifTable": "1.3.6.1.2.1.2.2", "ifMIB": "1.3.6.1.2.1.31",
		"ifXTable": "1.3.6.1.2.1.31.1.1", "ifStackTable": "1.3.6.1.2.1.31.1.2", "ifRcvAddressTable": "1.3.6.1.2.1.31.1.4",
		"dot3StatsTable": "1.3.6.1.2.1.10.7.2",

		"ip": "1.3.6.1.2.1.4", "ipAddrTable": "1.3.6.1.2.1.4.20", "ipRouteTable": "1.3.6.1.2.1.4.21", "ipNetToMediaTable": "1.3.6.1.2.1.4.22",
		"ipAddressTable": "1.3.6.1.2.1.4.34", "ipNetToPhysicalTable": "1.3.6.1.2.1.4.35",
		"icmp": "1.3.6.1.2.1.5", "tcp": "1.3.6.1.2.1.6", "udp": "1.3.6.1.2.1.7",

		"host": "1.3.6.1.2.1.25", "hrSystem": "1.3.6.1.2.1.25.1", "hrStorage": "1.3.6.1.2.1.25.2", "hrStorageTable": "1.3.6.1.2.1.25.2.3",
		"hrDeviceTable": "1.3.6.1.2.1.25.3.2", "hrProcessorTable": "1.3.6.1.2.1.25.3.3", "hrSWRunTable": "1.3.6.1.2.1.25.4.2",

		"entityMIB": "1.3.6.1.2.1.47", "entPhysicalTable": "1.3.6.1.2.1.47.1.1.1", "entAliasMappingTable": "1.3.6.1.2.1.47.1.3.2",
		"entPhysicalContainsTable": "1.3.6.1.2.1.47.1.3.3", "entitySensorMIB": "1.3.6.1.2.1.99", "entPhySensorTable": "1.3.6.1.2.1.99.1.1",

		"dot1dBridge": "1.3.6.1.2.1.17", "dot1dTpFdbTable": "1.3.6.1.2.1.17.4.3", "powerEthernetMIB": "1.3.6.1.2.1.105",
		"upsMIB": "1.3.6.1.2.1.33", "printmib": "1.3.6.1.2.1.43",
		"lldpMIB": "1.0.8802.1.1.2", "lldpRemTable": "1.0.8802.1.1.2.1.4.1",
	}
}

// Root returns the OID for a text: a dotted OID; or the name of an object that a module knows, or of a standard group or table,
// also with its module in front and an index behind, as in IF-MIB::ifDescr.7.
func (n *Names) Root(text string) (string, bool) {
	if o, err := parseOID(text); err == nil {
		return o.String(), true
	}
	if _, after, ok := strings.Cut(text, "::"); ok {
		text = after
	}
	name, index, indexed := strings.Cut(text, ".")
	root, known := standardRoots()[name]
	for _, m := range n.columns {
		if m.name == name {
			root, known = m.at.String(), true
			break
		}
	}
	if !known || !indexed {
		return root, known
	}
	o, err := parseOID(root + "." + index)
	if err != nil {
		return "", false
	}
	return o.String(), true
}
