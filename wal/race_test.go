//go:build race

package wal

// underRace says that the race detector makes everything ten times as slow: loops over all places of a fault take a part of
// them then.
const underRace = true
