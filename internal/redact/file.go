package redact

import (
	"bytes"
	"fmt"
	"io"
	"os"
)

// maxSecretFile bounds the bytes of a file: a bundle of all public authorities is much shorter.
const maxSecretFile = 4 << 20

// ReadFile returns the secret in a file, see [Trim]. The file must be a regular one: reading a pipe could block forever.
func ReadFile(name string) (string, error) {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a regular file", name)
	}
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxSecretFile+1))
	if err != nil {
		return "", err
	}
	if len(text) > maxSecretFile {
		return "", fmt.Errorf("%s has more than %d bytes", name, maxSecretFile)
	}
	return string(Trim(text)), nil
}

// Trim returns a file's secret without what editors add: a byte order mark before it, and space around it.
func Trim(text []byte) []byte {
	return bytes.TrimSpace(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")))
}
