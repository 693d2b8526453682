// Package reply decodes the answers of SNMP versions 1 and 2c into memory that is used again. A walk of a large device
// has thousands of variables in each round; gosnmp allocates several times for each of them.
//
// It decodes only what is as the standards say (RFC 3416, RFC 3417 section 8) and leaves everything else, errors
// included, to gosnmp: what it takes, gosnmp takes, too, and understands in the same way. It does no I/O.
package reply
