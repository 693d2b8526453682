// Package dbus is a client of a D-Bus message bus that does one thing: it calls methods with arguments
// that are strings, many at a time, and reads the answers. It follows the D-Bus specification, version 0.43,
// sections "Message Protocol" (the wire format), "Authentication Protocol", "Message Bus Messages".
//
// It signs in with the user of the process (EXTERNAL), owns no name, matches no signals, and passes no descriptors.
// An answer is read as it comes, value by value, against the types that the caller expects: nothing that a peer sends
// is made into a value of a type that it chose, and memory follows the bytes that have arrived.
package dbus
