package snmptool

import (
	"regexp"
	"slices"
	"strings"

	"github.com/gosnmp/gosnmp"

	"hwsagent/probes/snmp"
	"hwsagent/probes/tape"
)

// secretTrees are omitted from every recording: they hold communities, users and their key changes,
// access rights, and destinations of notifications (RFC 3584, 3414, 3415, 3413).
var secretTrees = []string{"1.3.6.1.6.3.18", "1.3.6.1.6.3.15.1.2", "1.3.6.1.6.3.16", "1.3.6.1.6.3.12", "1.3.6.1.6.3.13"}

// addressTrees have addresses in their indexes: those of IP, of ARP and neighbours, routes, TCP and UDP (RFC 4293,
// 4292, 4022, 4113, 1213), of bridges (RFC 4188, 4363) and LLDP's management addresses.
var addressTrees = []string{
	"1.3.6.1.2.1.3", "1.3.6.1.2.1.4.20", "1.3.6.1.2.1.4.21", "1.3.6.1.2.1.4.22", "1.3.6.1.2.1.4.24", "1.3.6.1.2.1.4.32", "1.3.6.1.2.1.4.34", "1.3.6.1.2.1.4.35",
	"1.3.6.1.2.1.4.37", "1.3.6.1.2.1.6.13", "1.3.6.1.2.1.6.19", "1.3.6.1.2.1.6.20", "1.3.6.1.2.1.7.5", "1.3.6.1.2.1.7.7", "1.3.6.1.2.1.14", "1.3.6.1.2.1.15",
	"1.3.6.1.2.1.17.4.3", "1.3.6.1.2.1.17.7.1.2", "1.3.6.1.2.1.55", "1.0.8802.1.1.2.1.3.8", "1.0.8802.1.1.2.1.4.2", "1.3.6.1.4.1.9.9.23.1.2.2",
}

// programTrees hold the programs of a computer and their parameters (RFC 2790): they are not hardware, and
// parameters may be secrets.
var programTrees = []string{"1.3.6.1.2.1.25.4", "1.3.6.1.2.1.25.5", "1.3.6.1.2.1.25.6"}

// nameTrees hold names given by people: sysContact, sysName, sysLocation, ifAlias, aliases of
// ENTITY-MIB, and the neighbours of LLDP and CDP.
var nameTrees = []string{
	"1.3.6.1.2.1.1.4", "1.3.6.1.2.1.1.5", "1.3.6.1.2.1.1.6", "1.3.6.1.2.1.31.1.1.1.18", "1.3.6.1.2.1.47.1.1.1.1.14",
	"1.0.8802.1.1.2.1.3.3", "1.0.8802.1.1.2.1.4.1.1", "1.3.6.1.4.1.9.9.23.1.2.1", "1.3.6.1.4.1.9.2.1.3",
}

// serialTrees hold serial numbers and asset tags: entPhysicalSerialNum, entPhysicalAssetID, prtGeneralSerialNumber.
var serialTrees = []string{"1.3.6.1.2.1.47.1.1.1.1.11", "1.3.6.1.2.1.47.1.1.1.1.15", "1.3.6.1.2.1.43.5.1.1.17"}

// redactor replaces data that identifies the owner of a device.
type redactor struct{ *tape.Redactor }

// learn collects words to replace wherever they occur.
func (r redactor) learn(vars []snmp.Variable, secrets ...string) {
	for _, s := range secrets {
		if s != "public" {
			r.LearnSecret(tape.Names, s)
		}
	}
	for _, v := range vars {
		b, ok := v.Value.([]byte)
		switch {
		case !ok:
		case within(v.OID, nameTrees[:3]):
			r.learnName(string(b))
		case v.OID == snmp.SysDescr:
			if words := unameText.FindStringSubmatch(string(b)); words != nil {
				r.learnName(words[1])
			}
		case within(v.OID, serialTrees):
			r.Learn(tape.Serials, string(b))
		}
	}
}

// unameText matches the self-description of a Unix machine: the system, the host's name, which may differ from sysName, and the release.
var unameText = regexp.MustCompile(`^(?:Linux|FreeBSD|NetBSD|OpenBSD|DragonFly|Darwin|SunOS) (\S+) [0-9]\S* `)

// learnName learns a name, and of host.example.net also the host.
func (r redactor) learnName(name string) {
	r.Learn(tape.Names, name)
	if host, _, found := strings.Cut(name, "."); found {
		r.Learn(tape.Names, host)
	}
}

// left reports whether the object is omitted from the recording.
func (r redactor) left(oid string) bool {
	out := within(oid, secretTrees) || within(oid, programTrees) || !r.Keeps(tape.Addresses) && within(oid, addressTrees)
	if out {
		r.LeaveOut()
	}
	return out
}

// value returns v in redacted form.
func (r redactor) value(v snmp.Variable) snmp.Variable {
	switch x := v.Value.(type) {
	case []byte:
		v.Value = r.octets(v.OID, x)
	case string:
		if v.Type == gosnmp.IPAddress {
			v.Value = r.Address(x)
		}
	}
	return v
}

func (r redactor) octets(oid string, b []byte) []byte {
	switch {
	case len(b) == 0:
		return b
	case !r.Keeps(tape.Names) && within(oid, nameTrees):
		return r.Shape(tape.Names, b)
	case !r.Keeps(tape.Serials) && within(oid, serialTrees):
		return r.Shape(tape.Serials, b)
	case isText(b):
		return []byte(r.Value(string(b)))
	case len(b) == 6 || len(b) == 8:
		return r.MAC(b)
	}
	return []byte(r.Words(string(b)))
}

// within reports whether the object is a root of the trees or below one.
func within(oid string, trees []string) bool {
	return slices.ContainsFunc(trees, func(t string) bool { return oid == t || strings.HasPrefix(oid, t+".") })
}

func isText(b []byte) bool {
	return !slices.ContainsFunc(b, func(c byte) bool { return (c < ' ' || c > '~') && c != '\n' && c != '\r' && c != '\t' })
}
