package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Bytes is a size in bytes, written in the configuration as 2GiB, 512MiB or 4096. As in
// Prometheus, KB, MB, GB and TB mean powers of 1024 too.
type Bytes int64

// byteUnits are the units, largest first.
var byteUnits = [...]struct {
	name, short string
	size        Bytes
}{
	{"TiB", "TB", 1 << 40}, {"GiB", "GB", 1 << 30}, {"MiB", "MB", 1 << 20}, {"KiB", "KB", 1 << 10}, {"B", "B", 1},
}

// ParseBytes reads a size. It accepts a decimal fraction before a unit (1.5GiB) and
// refuses sizes that are negative or above 8 EiB.
func ParseBytes(s string) (Bytes, error) {
	number := strings.TrimRight(s, "BKMGTi")
	unit := Bytes(1)
	if name := s[len(number):]; name != "" {
		unit = 0
		for _, u := range byteUnits {
			if name == u.name || name == u.short {
				unit = u.size
			}
		}
		if unit == 0 {
			return 0, fmt.Errorf("not a size: %q (write it like 512MiB or 2GiB)", s)
		}
	}
	number = strings.TrimRight(number, " ")
	if n, err := strconv.ParseInt(number, 10, 64); err == nil && n >= 0 && n <= math.MaxInt64/int64(unit) {
		return Bytes(n) * unit, nil
	}
	f, err := strconv.ParseFloat(number, 64)
	if f *= float64(unit); err != nil || !(f >= 0 && f < math.MaxInt64) {
		return 0, fmt.Errorf("not a size: %q (write it like 512MiB or 2GiB)", s)
	}
	return Bytes(f), nil
}

// String formats the size in the largest unit that divides it.
func (b Bytes) String() string {
	for _, u := range byteUnits {
		if b != 0 && b%u.size == 0 {
			return strconv.FormatInt(int64(b/u.size), 10) + u.name
		}
	}
	return "0B"
}

// UnmarshalYAML reads a size.
func (b *Bytes) UnmarshalYAML(unmarshal func(any) error) error {
	var s string
	if err := unmarshal(&s); err != nil {
		return err
	}
	n, err := ParseBytes(s)
	if err != nil {
		return err
	}
	*b = n
	return nil
}

// MarshalYAML formats the size as String does.
func (b Bytes) MarshalYAML() (any, error) { return b.String(), nil }
