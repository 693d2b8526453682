// Package snmptool implements the commands of hwsagent snmp. They examine a device for a person, and write no value to
// it and no configuration.
package snmptool
