//go:build !race

package host

// underRace is explained in race_test.go.
const underRace = false
