// Package savefile keeps the newest record of each target in two files of slots that survive kills, power cuts and damage. The caller
// defines the content of a record: package wal writes savepoints. The documentation of wal describes the bytes of a slot, and the
// assumptions about the disk.
//
// slot.go encodes slots, and merge.go decides which record of a target counts, both without I/O. files.go reads, and store.go writes.
package savefile
