package deadletter

import (
	"os"
	"path/filepath"
	"testing"

	"hwsagent/remotewrite"
)

// FuzzFiles: whatever stands in the files, the store opens, a letter that is put into it
// is there, alone on its line, and letters that stood there before stay.
func FuzzFiles(f *testing.F) {
	line, err := encode(letter(1))
	if err != nil {
		f.Fatal(err)
	}
	whole := string(line) + "\n"
	f.Add([]byte(whole), []byte(whole+whole))
	f.Add([]byte(whole+whole[:20]), []byte("{}\n\n[]\nnull\n"))
	f.Add([]byte{0xff, '\n', 0}, []byte(nil))
	f.Fuzz(func(t *testing.T, now, old []byte) {
		dir := t.TempDir()
		for name, b := range map[string][]byte{current: now, previous: old} {
			if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		before, err := List(dir)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Open(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if n := s.Count(); n != len(before) {
			t.Fatalf("%d letters before, %d when open", len(before), n)
		}
		want := letter(7)
		if err := s.Put([]remotewrite.Letter{want}); err != nil {
			t.Fatal(err)
		}
		after, err := s.List()
		if err != nil || len(after) != len(before)+1 || after[len(after)-1] != want || s.Count() != len(after) {
			t.Fatalf("%d letters before, %d after, %v", len(before), len(after), err)
		}
	})
}
