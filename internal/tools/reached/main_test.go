package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const source = `package p

import "errors"

func f(err error) int {
	if err != nil {
		return 1
	}
	if err := g(); err != nil { // not reached: g has no error
		return 2
	}
	switch {
	case errors.Is(err, nil):
		return 3
	case true:
	}
	return 0
}
`

// A branch that is neither reached nor waived is reported with its place, and the check fails.
func TestCheck(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "p")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "p.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		what          string
		first, third  string // counts of the first and the third branch
		least         float64
		says, failure string
	}{
		{"all", "1", "4", 50, "3 branches of errors, 1 waived, 0 not reached", ""},
		{"an if is not reached", "0", "4", 50, "p.go:6:2: no test reaches", "1 branches of errors"},
		{"a case is not reached", "1", "0", 50, "p.go:13:2: no test reaches", "1 branches of errors"},
		{"too little", "1", "1", 95, "75.0 % of 4", "less than 95.0 %"},
	} {
		profile := "mode: set\nm/p/p.go:6.16,8.3 1 " + tc.first + "\nm/p/p.go:9.28,11.3 1 0\n" +
			"m/p/p.go:13.27,14.11 1 " + tc.third + "\nm/p/p.go:17.2,17.10 1 1\nm/other/o.go:1.1,2.2 9 0\n"
		var out strings.Builder
		err := check(&out, strings.NewReader(profile), dir, tc.least)
		if !strings.Contains(out.String(), tc.says) {
			t.Errorf("%s: it says %q", tc.what, out.String())
		}
		if tc.failure == "" && err != nil || tc.failure != "" && (err == nil || !strings.Contains(err.Error(), tc.failure)) {
			t.Errorf("%s: the error is %v", tc.what, err)
		}
	}
	if err := check(&strings.Builder{}, strings.NewReader("mode: set\n"), dir, 1); err == nil {
		t.Error("an empty profile is taken")
	}
	if err := check(&strings.Builder{}, strings.NewReader("mode: set\nm/p/p.go:x\n"), dir, 1); err == nil {
		t.Error("a broken profile is taken")
	}
}

// A comment in a branch within another excuses the inner one alone.
func TestWaiverIsOfTheInnermost(t *testing.T) {
	name := filepath.Join(t.TempDir(), "p.go")
	nested := "package p\n\nfunc f(err error) {\n\tif err != nil {\n\t\tif err := g(); err != nil {\n\t\t\treturn // not reached: g has no error\n\t\t}\n\t}\n}\n"
	if err := os.WriteFile(name, []byte(nested), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := errorBranches(name)
	if err != nil || len(all) != 2 || all[0].waived || !all[1].waived {
		t.Errorf("%+v, %v", all, err)
	}
}
