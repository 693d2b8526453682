package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"os"
	"regexp"
	"testing"
	"time"
)

// TestBillOfThisProgram: the bill of a program names what is linked into it, twice with the same bytes.
func TestBillOfThisProgram(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var one, two bytes.Buffer
	for _, w := range []*bytes.Buffer{&one, &two} {
		if err := write(w, self, "v1.2.3", time.Unix(1700000000, 0)); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(one.Bytes(), two.Bytes()) {
		t.Error("the bill differs the second time")
	}
	var b bom
	if err := json.Unmarshal(one.Bytes(), &b); err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	if len(b.Components) != len(info.Deps)+1 || len(b.Dependencies[0].DependsOn) != len(b.Components) || b.Components[0].Version != info.GoVersion {
		t.Errorf("%d components of %d modules", len(b.Components), len(info.Deps))
	}
	if b.Metadata.Timestamp != "2023-11-14T22:13:20Z" || b.Metadata.Component.Version != "v1.2.3" {
		t.Errorf("metadata %+v", b.Metadata)
	}
	if !regexp.MustCompile(`^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(b.Serial) {
		t.Errorf("serial number %s", b.Serial)
	}
	if err := write(&one, "main.go", "", time.Time{}); err == nil {
		t.Error("a file that is no program has a bill")
	}
}
