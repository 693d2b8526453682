// Package snmptool implements the commands of hwsagent snmp, which examine devices and recordings for a person and
// convert profiles of other programs. It changes neither devices nor configurations.
package snmptool
