// Package redact keeps secrets out of texts for people: logs, errors, pages and metrics.
//
// [Secrets] are values that are known, and are cut out of texts that others wrote and that may repeat
// them: what a server answers, what a command prints, what net/http says about an address.
// [URL] and [Text] hide the parts of an address that may be secret, whatever they are.
package redact

import "strings"

// Mark stands in a text where a secret was.
const Mark = "<secret>"

// OpenHeader reports whether the values of a header are no secret: they name a tenant or a program,
// and a person who looks for a mistake needs them.
func OpenHeader(name string) bool {
	switch strings.ToLower(name) {
	case "x-scope-orgid", "thanos-tenant", "user-agent", "x-prometheus-remote-write-version":
		return true
	}
	return false
}

// OpenParameter reports whether a parameter of a token request is no secret.
func OpenParameter(name string) bool {
	switch name {
	case "audience", "grant_type", "resource", "scope", "tenant":
		return true
	}
	return false
}
