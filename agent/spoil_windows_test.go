package agent

import "os"

// spoilFile puts at path what cannot be read as a file.
func spoilFile(path string) error { return os.Mkdir(path, 0o700) }
