//go:build !linux

package main

// releaseProgram does nothing: other systems decide by themselves which pages of a program are in memory.
func releaseProgram() (stop func()) { return func() {} }
