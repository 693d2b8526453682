// Package tape records the questions of a probe and the answers, so that a machine or device can be read again elsewhere.
//
// A probe writes to a [Tape] while it reads, a [Redactor] replaces data that identifies the owner of the hardware, and a
// [Player] answers a probe from the tape. Each probe defines the form of its questions: the arguments of a program, the path
// of a resource, the bytes of a command, the path of a file.
package tape
