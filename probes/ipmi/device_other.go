//go:build !linux && !windows

package ipmi

func newBackend() backend { return nil }
