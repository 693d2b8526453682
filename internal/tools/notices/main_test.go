package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	mit = `MIT License

Copyright (c) 2020 Somebody

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files
(the "Software"), to deal in the Software without restriction, including without limitation the rights to use, copy, modify, merge,
publish, distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is furnished to do
so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF
MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE
FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION
WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
`
	mpl = "This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0. " +
		"If a copy of the MPL was not distributed with this file, You can obtain one at http://mozilla.org/MPL/2.0/.\n"
	gpl = "This program is free software: you can redistribute it and/or modify it under the terms of the GNU General Public License as published by the Free Software Foundation, either version 3 of the License, or (at your option) any later version.\n"
)

// apache is the licence of this repository.
func apache(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// tree makes files below a new directory.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func pkg(dir, module, version, inside string) listed {
	var l listed
	l.ImportPath, l.Dir = module+"/"+inside, filepath.Join(dir, inside)
	l.Module = &struct {
		Path, Version, Dir string
		Main               bool
		Replace            *struct{ Version string }
	}{Path: module, Version: version, Dir: dir}
	return l
}

// The licence of a package is that of its directory and of all above it in its module, and of no
// other directory.
func TestNotices(t *testing.T) {
	a := tree(t, map[string]string{
		"LICENSE": apache(t), "NOTICE.txt": "Somebody's product\r\n", "in/ner/LICENSE": mit, "in/ner/x.go": "", "other/LICENSE": mpl, "license.go": "package a", "README": "",
	})
	b := tree(t, map[string]string{"LICENSE": mpl, "x/LICENSE": mit})
	all := map[string]*module{}
	for _, p := range []listed{
		pkg(a, "example.org/a", "v1.0.0", "in/ner"), pkg(b, "example.org/b", "v2.0.0", ""), pkg(b, "example.org/b", "v2.0.0", "x"),
		{ImportPath: "fmt", Standard: true},
	} {
		if err := add(all, p); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	if err := write(&out, []*module{all["example.org/a"], all["example.org/b"]}); err != nil {
		t.Fatal(err)
	}
	words := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{
		"example.org/a v1.0.0 Apache-2.0, MIT example.org/b v2.0.0 MIT, MPL-2.0", "https://example.org/b (tag v2.0.0)", "https://proxy.golang.org/example.org/b/@v/v2.0.0.zip",
		"example.org/a v1.0.0: NOTICE.txt Somebody's product", "example.org/a v1.0.0: in/ner/LICENSE example.org/b v2.0.0: x/LICENSE MIT License",
	} {
		if !strings.Contains(words, want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	for _, not := range []string{"other/LICENSE", "license.go", "\r"} {
		if strings.Contains(out.String(), not) {
			t.Errorf("%q is in\n%s", not, out.String())
		}
	}
	if n := strings.Count(out.String(), "Permission is hereby"); n != 1 {
		t.Errorf("one text is there %d times", n)
	}
}

// A module without a licence, or with one that is not known or not allowed, is an error that says what to do.
func TestUnknownLicences(t *testing.T) {
	for text, want := range map[string]string{"": "has no file with a licence", "You may do as we say.\n": "is not known", gpl: "which the agent may not link"} {
		files := map[string]string{"x.go": ""}
		if text != "" {
			files["COPYING"] = text
		}
		dir := tree(t, files)
		all := map[string]*module{}
		if err := add(all, pkg(dir, "example.org/a", "v1.0.0", "")); err != nil {
			t.Fatal(err)
		}
		if err := write(&strings.Builder{}, []*module{all["example.org/a"]}); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "example.org/a v1.0.0") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestLicences(t *testing.T) {
	for text, want := range map[string]string{
		apache(t): "Apache-2.0", mpl: "MPL-2.0", mit: "MIT", mit + apache(t): "Apache-2.0 MIT", gpl: "GPL-3.0-or-later",
		"All rights reserved.": "", mit + strings.Repeat("But you may not. ", 100): "",
	} {
		if got := strings.Join(licences(text), " "); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

// A file that is out of date in any line is found, and the difference is named.
func TestOutOfDate(t *testing.T) {
	for _, tc := range [][3]string{
		{"a\nb\n", "a\nb\n", ""},
		{"a\n", "a\nb\n", `line 2 is "", and must be "b"`},
		{"a\nb\n", "a\n", `line 2 is "b", and must be ""`},
		{"a\nx\n", "a\nb\n", `line 2 is "x", and must be "b"`},
		{"", "a", `line 1 is "", and must be "a"`},
		{"a", "a\n", `it ends before ""`},
	} {
		if got := firstDifference([]byte(tc[0]), []byte(tc[1])); got != tc[2] {
			t.Errorf("%q, %q: %s", tc[0], tc[1], got)
		}
	}
	if err := run("", filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a file that is not there is up to date")
	}
	if err := run("", ""); err == nil {
		t.Error("no file is up to date")
	}
}
