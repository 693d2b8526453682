//go:build linux

package host

import (
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"hwsagent/probes"
)

// TestRubbish cuts, repeats and overwrites what is read, at random. Nothing panics and
// every label stays legal.
func TestRubbish(t *testing.T) {
	c := fixtures(t)
	c.Collectors = hostOnly
	var files []string
	content := make(map[string][]byte)
	for _, root := range []string{c.ProcPath, c.SysPath, c.UdevPath} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			files = append(files, path)
			content[path], err = os.ReadFile(path)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	p := mustNew(t, c)
	for range 40 {
		for range len(files) / 10 {
			path := files[rnd.IntN(len(files))]
			if err := os.WriteFile(path, spoil(rnd, content[path]), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		r := probes.NewRound(0)
		if err := p.Collect(t.Context(), r); err != nil {
			// procfs' parser of mdstat panics on some rubbish, which TestPanic is about.
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if strings.Contains(line, " panicked: ") && !strings.Contains(line, "mdadm: the work panicked: ") {
					t.Fatal(err)
				}
			}
		}
		for _, s := range r.Samples() {
			for _, l := range s.Labels {
				if !utf8.ValidString(l) {
					t.Fatalf("%s has the label text %q", s.Family.Name, l)
				}
			}
		}
	}
}

// spoil returns a changed copy of b.
func spoil(rnd *rand.Rand, b []byte) []byte {
	b = append([]byte(nil), b...)
	switch rnd.IntN(4) {
	case 0: // cut
		return b[:rnd.IntN(len(b)+1)]
	case 1: // repeat
		return append(b, b...)
	case 2: // other bytes
		for i := range b {
			if rnd.IntN(20) == 0 {
				b[i] = byte(rnd.Uint32())
			}
		}
	default: // other characters of the kinds that parsers look for
		const special = "\n\t :-()[]/,=0xF_"
		for i := range b {
			if rnd.IntN(10) == 0 {
				b[i] = special[rnd.IntN(len(special))]
			}
		}
	}
	return b
}
