package config

import (
	"strings"
	"testing"
)

// FuzzBytes: a size is printed so that it reads back as itself, and is never negative.
func FuzzBytes(f *testing.F) {
	for _, s := range []string{"0", "1.5GiB", "512MB", "8 KiB", "1e3", "9223372036854775807", "9223372036854775808", "0x1p-2GiB", "NaN", "-1", "1BB", "Inf"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		b, err := ParseBytes(s)
		if err != nil {
			return
		}
		if again, err := ParseBytes(b.String()); b < 0 || err != nil || again != b {
			t.Errorf("%q is %d, printed %q, which is %d: %v", s, b, b, again, err)
		}
	})
}

// FuzzURL: whatever an address is, what is printed of it holds no user, password or query.
func FuzzURL(f *testing.F) {
	for _, s := range []string{"https://host:1/path", "http://u:CANARY@host/p?t=CANARY#CANARY", "http:u:CANARY@host", "//u:CANARY@h", "http://[::1]/%2f", "host:9090"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		u, err := ParseURL(s)
		if err != nil {
			if s != "" && len(s) > 8 && strings.Contains(err.Error(), s) {
				t.Errorf("the error repeats %q", s)
			}
			return
		}
		full, shown := u.Full(), u.String()
		if full.Opaque != "" && len(full.Opaque) > 8 && strings.Contains(strings.TrimPrefix(shown, full.Scheme), full.Opaque) {
			t.Errorf("%q is shown as %q", s, shown)
		}
		if p, ok := full.User.Password(); ok && len(p) > 8 && !strings.Contains(full.Host+full.Path+full.Scheme, p) && strings.Contains(shown, p) {
			t.Errorf("%q is shown as %q", s, shown)
		}
	})
}
