package main

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestReleasableAreasCanBeReadAgain(t *testing.T) {
	const smaps = `00400000-00500000 r-xp 00000000 fe:00 12345                              /usr/bin/hwsagent
Size:               1024 kB
Rss:                1000 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me
00500000-00700000 r--p 00100000 fe:00 12345                              /usr/bin/a name (deleted)
Anonymous:             0 kB
00700000-00708000 r--p 00300000 fe:00 12345                              /usr/bin/hwsagent
Rss:                  32 kB
Anonymous:             4 kB
00708000-00710000 rw-p 00308000 fe:00 12345                              /usr/bin/hwsagent
Anonymous:             0 kB
00710000-00720000 r--p 00000000 00:00 0
Anonymous:             0 kB
00720000-00730000 ---p 00000000 fe:00 12345                              /usr/bin/hwsagent
Anonymous:             0 kB
7ffea6a41000-7ffea6a43000 r-xp 00000000 00:00 0                          [vdso]
Anonymous:             0 kB
`
	want := []area{{0x400000, 0x500000}, {0x500000, 0x700000}}
	if got := releasable(strings.NewReader(smaps)); !slices.Equal(got, want) {
		t.Errorf("%x, want %x", got, want)
	}
	if got := releasable(strings.NewReader("no list\nAnonymous: 0 kB\n")); len(got) > 0 {
		t.Errorf("%x are in no list", got)
	}
}

// TestReleasePagesLowersTheResidentMemory: the pages of the test program that were needed until now are released, and it goes on.
func TestReleasePagesLowersTheResidentMemory(t *testing.T) {
	before := residentFile(t)
	releasePages()
	if after := residentFile(t); after >= before {
		t.Errorf("%d kB of files were resident, then %d", before, after)
	}
}

// residentFile returns how much memory of files is in this process, in kB.
func residentFile(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`RssFile:\s+(\d+) kB`).FindSubmatch(status)
	if found == nil {
		t.Skip("the kernel does not say how much memory of files is resident")
	}
	n, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
