package queue

import (
	"strings"
	"testing"
)

func TestCheckName(t *testing.T) {
	for _, name := range []string{"a", "Prod", "a.b/c d", "ü", "nul", strings.Repeat("x", MaxNameBytes)} {
		if err := CheckName(name); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"", strings.Repeat("x", MaxNameBytes+1), strings.Repeat("X", 100)} {
		if CheckName(name) == nil {
			t.Errorf("%q is accepted", name)
		}
	}
}
