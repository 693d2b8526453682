// Package version identifies the build of the agent.
package version

import (
	"runtime"
	"runtime/debug"
)

// Version is the release, set by the linker; builds without it say "unknown".
var Version = "unknown"

// Homepage is the address of the documentation, set by the linker if the publisher names one.
var Homepage string

// Info identifies a build.
type Info struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"` // of the source, with "-dirty" if it was changed
	Go       string `json:"go"`
	Platform string `json:"platform"` // GOOS/GOARCH
}

// Build identifies the running binary.
func Build() Info {
	b := Info{Version: Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	dirty := ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			b.Revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "-dirty"
		}
	}
	if b.Revision != "" {
		b.Revision += dirty
	}
	return b
}
