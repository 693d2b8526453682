// Package snmptool has the commands of hwsagent snmp: they look at devices for a person, and change
// nothing, neither there nor in a configuration.
package snmptool
