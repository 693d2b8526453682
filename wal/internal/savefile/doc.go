// Package savefile keeps the newest record of each target in two files, over kills, power cuts and damage. What a record
// says is the caller's: package wal writes savepoints. The documentation of wal has the bytes of a file, and what is
// assumed of the disk.
//
// Read merges what the two files say, and changes nothing; Open does the same and returns a Store, which
// writes. cell.go has the bytes of a cell, merge.go the decision which record of a target counts, both without I/O.
package savefile
