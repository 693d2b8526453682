package remotewrite

import (
	"strings"
	"testing"
	"unicode"
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

// FuzzAnswerText: what a receiver says becomes one printable line that is no longer than
// what it said.
func FuzzAnswerText(f *testing.F) {
	f.Add(400, []byte("out of order sample\n"))
	f.Add(502, []byte("<html><head><title>502 Bad Gateway</title></head></html>"))
	f.Add(500, []byte("<!DOCTYPE html><title>&lt;script&gt;\x1b[31m&#10;</title>"))
	f.Add(400, []byte("\xff\xfe\u202e"))
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		if len(body) > keptText {
			body = body[:keptText]
		}
		text := said(status, body)
		for _, r := range text {
			if r == unicode.ReplacementChar && !strings.ContainsRune(string(body), r) && !strings.Contains(string(body), "&") || !unicode.IsPrint(r) {
				t.Errorf("%q becomes %q", body, text)
			}
		}
		if len(text) > 4*len(body) {
			t.Errorf("%d bytes become %d", len(body), len(text))
		}
	})
}

// FuzzCertificates: a credential file that is not a certificate is an error, and how many
// there are is at most how often one begins.
func FuzzCertificates(f *testing.F) {
	f.Add("")
	f.Add("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
	f.Add("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n-----BEGIN CERT")
	f.Fuzz(func(t *testing.T, text string) {
		ends, err := certificates(text)
		if (err == nil) != (len(ends) > 0) || len(ends) > strings.Count(text, "-----BEGIN CERTIFICATE") {
			t.Errorf("%d certificates, %v", len(ends), err)
		}
	})
}
