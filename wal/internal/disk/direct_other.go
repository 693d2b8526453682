//go:build !linux

package disk

import (
	"errors"
	"os"
)

// Direct is 0 where this package does not know how to write past the page cache; see the constant for Linux.
const Direct = 0

// takesSectors is never called, because no flag has Direct.
func takesSectors(*os.File) error { return errors.ErrUnsupported }
