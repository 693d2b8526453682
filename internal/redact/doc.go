// Package redact keeps secrets out of texts for people: logs, errors, pages and metrics.
//
// [Secrets] are known values, which are cut out of texts that others wrote and that may repeat them: a server's answer,
// a command's output, an error of net/http about an address. [URL] and [Text] hide the parts of an address that may be
// secret, whatever their values.
package redact

import "strings"

// Mark replaces a secret in a text.
const Mark = "<secret>"

// OpenHeader reports whether the values of a header may be shown: they name a tenant or a program, and people who look
// for a mistake need them.
func OpenHeader(name string) bool {
	switch strings.ToLower(name) {
	case "x-scope-orgid", "thanos-tenant", "user-agent", "x-prometheus-remote-write-version":
		return true
	}
	return false
}

// OpenParameter reports whether a parameter of a token request may be shown.
func OpenParameter(name string) bool {
	switch name {
	case "audience", "grant_type", "resource", "scope", "tenant":
		return true
	}
	return false
}
