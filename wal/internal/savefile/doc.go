// Package savefile keeps the newest record of each target in two files that survive kills, power cuts and damage. The caller
// defines the content of a record: package wal writes savepoints. The documentation of wal describes the bytes of a file, and
// the assumptions about the disk.
//
// Read merges the records of the two files without changing them. Open does the same and returns a Store, which
// writes. cell.go encodes cells, and merge.go decides which record of a target counts, both without I/O.
package savefile
