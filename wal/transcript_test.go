package wal

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// transcriptFlag registers the flag that prints transcripts anew.
func transcriptFlag() {
	flag.String("transcripts", "", "why the outputs in testdata/*.txt change: TestTranscripts writes them anew, with that reason beside each")
}

// A transcript is a text of scenes: each is the life of one log on a disk in memory, in virtual time.
//
//	# A comment says what the scene shows.
//	scene its name
//	open sync=always; write 3
//		acknowledged 1
//	crash; open; show
//		segment 0: 1
//
// A line has commands, which stage.commands lists, with a semicolon between two. Behind it, each after a tab, are the lines that they
// print. A line that begins with "# printed anew:" is the reason that was given when the outputs of a scene changed last.
type transcript []*scene

// scene is one scene and the text before it.
type scene struct {
	before []string // comments and empty lines
	name   string
	lines  []line
}

// line is one line of commands.
type line struct {
	before   []string
	commands string
	output   []string
}

const reasonMark = "# printed anew: "

// parseTranscript is the inverse of transcript.String.
func parseTranscript(text string) (list transcript, err error) {
	var before []string
	for n, s := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		name, begins := strings.CutPrefix(s, "scene ")
		output, printed := strings.CutPrefix(s, "\t")
		switch {
		case s == "" || strings.HasPrefix(s, "#"):
			before = append(before, s)
		case begins:
			list, before = append(list, &scene{before: before, name: name}), nil
		case len(list) == 0:
			return nil, fmt.Errorf("line %d: %q stands before the first scene", n+1, s)
		case printed:
			lines := list[len(list)-1].lines
			if len(lines) == 0 || before != nil {
				return nil, fmt.Errorf("line %d: %q is the output of no command", n+1, s)
			}
			l := &lines[len(lines)-1]
			l.output = append(l.output, output)
		default:
			s0 := list[len(list)-1]
			s0.lines, before = append(s0.lines, line{before: before, commands: s}), nil
		}
	}
	return list, nil
}

func (list transcript) String() string {
	var b strings.Builder
	put := func(indent string, lines ...string) {
		for _, s := range lines {
			fmt.Fprintln(&b, indent+s)
		}
	}
	for _, s := range list {
		put("", append(slices.Clone(s.before), "scene "+s.name)...)
		for _, l := range s.lines {
			put("", append(slices.Clone(l.before), l.commands)...)
			put("\t", l.output...)
		}
	}
	return b.String()
}

// play runs the scene and returns it with what it prints now.
func (s *scene) play(t *testing.T) *scene {
	now := &scene{before: s.before, name: s.name}
	synctest.Test(t, func(t *testing.T) {
		on := newStage(t)
		defer on.end()
		for _, l := range s.lines {
			for c := range strings.SplitSeq(l.commands, ";") {
				on.run(strings.Fields(c))
			}
			now.lines = append(now.lines, line{before: l.before, commands: l.commands, output: on.printed()})
		}
	})
	return now
}

// because notes why the outputs of a scene are others now.
func (s *scene) because(reason string) {
	s.before = slices.DeleteFunc(slices.Clone(s.before), func(s string) bool { return strings.HasPrefix(s, reasonMark) })
	s.before = append(s.before, reasonMark+reason)
}

// TestTranscripts plays all scenes: each prints what it printed when somebody looked at it last.
func TestTranscripts(t *testing.T) {
	reason := flag.Lookup("transcripts").Value.String()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			list, err := parseTranscript(string(text))
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if list.String() != string(text) {
				t.Fatalf("%s: a line has spaces at its end, or text stands behind the last scene", file)
			}
			for i, s := range list {
				t.Run(s.name, func(t *testing.T) {
					now := s.play(t)
					before, after := transcript{s}.String(), transcript{now}.String()
					switch {
					case before == after:
					case reason != "":
						now.because(reason)
						list[i] = now
					default:
						t.Errorf("%s, scene %s prints:\n%s\nwant:\n%s", file, s.name, after, before)
					}
				})
			}
			if reason != "" && !t.Failed() {
				if err := os.WriteFile(file, []byte(list.String()), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// A transcript that cannot be understood is refused, with the line; one that is understood is printed as it was.
func TestParseTranscript(t *testing.T) {
	for text, want := range map[string]string{
		"write 3\n":                         `line 1: "write 3" stands before the first scene`,
		"scene a\n\tx\n":                    `line 2: "\tx" is the output of no command`,
		"scene a\nopen\n# why\n\tx\n":       `line 4: "\tx" is the output of no command`,
		"# a\n\nscene a\nopen; b\n\tx\nc\n": "<nil>",
	} {
		list, err := parseTranscript(text)
		if fmt.Sprint(err) != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
		if err == nil && list.String() != text {
			t.Errorf("%q is printed as %q", text, list)
		}
	}
}
