// Package reply decodes the answers of SNMP versions 1 and 2c into reused memory. A walk of a large device has
// thousands of variables in each round; gosnmp allocates several times for each of them.
//
// It decodes only packets that follow the standards (RFC 3416, RFC 3417 section 8) and leaves all others, errors
// included, to gosnmp: gosnmp accepts every packet that reply accepts, with the same result. It does no I/O.
package reply
