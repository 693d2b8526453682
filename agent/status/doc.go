// Package status describes a whole agent in one value, [Status], and judges it: what is wrong, how bad that is, what it
// costs and what to do. Page, JSON, terminal and exit code render this one value.
//
// [Judge] is pure: it reads the facts of a Status and nothing else. The package also formats numbers and times for people,
// so that every rendering has the same.
package status
