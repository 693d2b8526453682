package redact

import (
	"bytes"

	"hwsagent/internal/files"
)

// maxSecretFile bounds the bytes of a file: a bundle of all public authorities is much shorter.
const maxSecretFile = 4 << 20

// ReadFile returns the secret in a file, see [Trim]. The file must be a regular one: reading a pipe could block forever.
func ReadFile(name string) (string, error) {
	text, err := files.Read(name, maxSecretFile)
	if err != nil {
		return "", err
	}
	return string(Trim(text)), nil
}

// Trim returns a file's secret without what editors add: a byte order mark before it, and space around it.
func Trim(text []byte) []byte {
	return bytes.TrimSpace(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")))
}
