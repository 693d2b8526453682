package disk

import "unsafe"

// alignment suits all disks: no sector, and no alignment that a driver asks of memory, is larger than a page.
const alignment = 4096

// Aligned returns n zeros at an address that writes to a file opened with Direct may use.
func Aligned(n int) []byte {
	b := make([]byte, n+alignment)
	rest := int(uintptr(unsafe.Pointer(unsafe.SliceData(b))) % alignment) //nolint:gosec // only the address is used
	return b[alignment-rest:][:n:n]
}
