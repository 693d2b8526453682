// Command sbom writes the bill of materials of a Go program, in the JSON of CycloneDX 1.5: the module of the program,
// its Go, and every module linked into it, from the program's own build information.
//
//	sbom -version v1.2.3 -time 1700000000 bin/hwsagent >hwsagent.cdx.json
//
// The same program gives the same bytes.
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"
)

func main() {
	version := flag.String("version", "unknown", "of the program")
	made := flag.Int64("time", 0, "of the source, in seconds since 1970")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "sbom: name one program")
		os.Exit(2)
	}
	if err := write(os.Stdout, flag.Arg(0), *version, time.Unix(*made, 0)); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

// bom is the part of CycloneDX 1.5 (https://cyclonedx.org/docs/1.5/json/) that is written.
type bom struct {
	Format       string       `json:"bomFormat"`
	Spec         string       `json:"specVersion"`
	Serial       string       `json:"serialNumber"` // by the contents of the program
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Timestamp  string     `json:"timestamp"`
	Component  component  `json:"component"`
	Properties []property `json:"properties,omitempty"` // how it was built
}

type component struct {
	Type    string `json:"type"`
	Ref     string `json:"bom-ref"`
	Name    string `json:"name"`
	Version string `json:"version"`
	PURL    string `json:"purl,omitempty"`
	Hashes  []hash `json:"hashes,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn"`
}

func write(w io.Writer, program, version string, made time.Time) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return fmt.Errorf("read what is linked: %w", err)
	}
	sum, err := digest(program)
	if err != nil {
		return fmt.Errorf("read the program: %w", err)
	}
	b := describe(info, filepath.Base(program), version, sum, made)
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(b)
}

func digest(file string) ([]byte, error) {
	f, err := os.Open(file) // #nosec G304 -- the caller names it
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return nil, err
	}
	return h.Sum(nil), nil
}

// describe returns the bill of materials of a program with that build information and SHA-256.
func describe(info *debug.BuildInfo, name, version string, sum []byte, made time.Time) bom {
	main := component{Type: "application", Ref: name, Name: name, Version: version, Hashes: []hash{{"SHA-256", hex.EncodeToString(sum)}}}
	b := bom{Format: "CycloneDX", Spec: "1.5", Serial: serial(sum), Version: 1, Metadata: metadata{Timestamp: made.UTC().Format(time.RFC3339), Component: main}}
	for _, s := range info.Settings {
		switch s.Key {
		case "GOOS", "GOARCH", "CGO_ENABLED", "-tags", "-trimpath", "vcs.revision":
			b.Metadata.Properties = append(b.Metadata.Properties, property{"go:" + s.Key, s.Value})
		}
	}
	std := component{Type: "library", Ref: "pkg:golang/std@" + info.GoVersion, Name: "std", Version: info.GoVersion, PURL: "pkg:golang/std@" + info.GoVersion}
	b.Components = []component{std}
	for _, m := range info.Deps {
		if m.Replace != nil {
			if m = m.Replace; m.Version == "" {
				continue // a directory of this repository
			}
		}
		purl := "pkg:golang/" + m.Path + "@" + m.Version
		b.Components = append(b.Components, component{Type: "library", Ref: purl, Name: m.Path, Version: m.Version, PURL: purl})
	}
	all := dependency{Ref: main.Ref}
	for _, c := range b.Components {
		all.DependsOn = append(all.DependsOn, c.Ref)
	}
	b.Dependencies = []dependency{all}
	return b
}

// serial returns a UUID of version 8 (RFC 9562, section 5.8) made from a digest.
func serial(sum []byte) string {
	u := append([]byte{}, sum[:16]...)
	u[6], u[8] = u[6]&0x0f|0x80, u[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}
