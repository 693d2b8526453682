//go:build !race

package wal

// underRace is explained in race_test.go.
const underRace = false
