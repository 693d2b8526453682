// Package rules tests the source of the whole module: which package may import which, which packages the agent must not
// link, the style of log lines and errors, the links in comments and pages, and the tests that docs/guarantees.md names.
package rules
