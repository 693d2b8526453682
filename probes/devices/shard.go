package devices

import "hash/fnv"

// Shard is the share of a list that an agent reads. Agents with the same list and the indexes 0 to Total-1 together
// read each device exactly once.
type Shard struct {
	Index int `yaml:"index"` // from 0
	Total int `yaml:"total"` // at least 1
}

// Has reports whether the device belongs to the share. It depends on the target's text alone. A nil share has all
// devices.
func (s *Shard) Has(target string) bool {
	return s == nil || int(mix(target)%uint64(s.Total)) == s.Index
}

// mix returns a hash of s with well spread bits, unlike FNV for short names (the finaliser of MurmurHash3).
func mix(s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s))
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return x
}
