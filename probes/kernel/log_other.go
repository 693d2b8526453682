//go:build !linux

package kernel

import "errors"

var errPlatform = errors.New("the log of the kernel is read on Linux only")

func openLog() (source, error) { return nil, errPlatform }

func bootID() (string, error) { return "", errPlatform }
