// Package status describes a whole agent in one value, [Status], and judges it. Each problem has a severity, a
// text that says what failed and why, and a remedy. Page, JSON, terminal and exit code render this one value.
//
// [Judge] is pure: it reads the facts of a Status and nothing else. The package also formats numbers and times for people,
// so that every rendering has the same.
package status
