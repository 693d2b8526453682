// Package snmptool implements the commands of hwsagent snmp: they examine devices for a person, and change
// neither devices nor configurations.
package snmptool
