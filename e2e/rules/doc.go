// Package rules tests the source of the whole module: which package may import which, the style of log lines and
// errors, the links in comments and pages, the tests that docs/guarantees.md names, and what is linked into the agent.
package rules
