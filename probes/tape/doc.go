// Package tape keeps what a probe asked and what it was answered, so that a machine or device can be read again elsewhere.
//
// A probe writes on a [Tape] while it reads, a [Redactor] replaces what tells whose the hardware is, and a [Player] answers
// a probe from the tape. What a question looks like is the probe's own affair: the arguments of a program, the path of a
// resource, the bytes of a command, the path of a file.
package tape
