//go:build !linux

package disk

// Direct is 0 where this package does not know how to write past the page cache; see the constant for Linux.
const Direct = 0
