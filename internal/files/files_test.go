package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(file, []byte("12345"), 0o600), os.Symlink(file, link)); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		path  string
		limit int64
		want  error
	}{
		{file, 5, nil}, {link, 5, nil}, {file, 4, ErrTooLarge}, {dir, 5, ErrNotRegular}, {filepath.Join(dir, "none"), 5, fs.ErrNotExist},
	} {
		text, err := Read(tc.path, tc.limit)
		if !errors.Is(err, tc.want) || err == nil && string(text) != "12345" {
			t.Errorf("%s within %d: %q, %v; want the error %v", tc.path, tc.limit, text, err, tc.want)
		}
		if err := Check(tc.path); (err != nil) != errors.Is(tc.want, ErrNotRegular) {
			t.Errorf("check %s: %v", tc.path, err)
		}
	}
}
