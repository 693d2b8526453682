//go:build !race

package client

// underRace is explained in race_test.go.
const underRace = false
