package client

import (
	"strings"
	"testing"
	"unicode"
)

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
		text := bodyText(status, body)
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
