package remotewrite

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

var transcripts = flag.Bool("transcripts", false, "TestTranscripts writes the outputs in testdata/*.txt anew; read what changes before it is committed")

// TestTranscripts plays the scenes of testdata/*.txt. Each is the life of one queue between a log and a receiver, in virtual time. It has
// one shard, unless the entry says otherwise: the order in which several shards get their turn is random.
//
//	# A comment says what the scene shows.
//	scene its name
//	append a1-a5; start; wait 2s; show
//		5 samples: 5 delivered
//
// A line has commands, which stage.commands lists, with a semicolon between two. Behind it, each after a tab, are the lines that they print.
func TestTranscripts(t *testing.T) {
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
			var printed []string
			scenes := strings.Split(string(text), "\nscene ")
			for i, scene := range scenes {
				if i == 0 {
					printed = append(printed, scene) // the text before the first scene
					continue
				}
				name, _, _ := strings.Cut(scene, "\n")
				t.Run(name, func(t *testing.T) {
					now := ""
					synctest.Test(t, func(t *testing.T) { now = play(t, scene) })
					if printed = append(printed, now); now != scene && !*transcripts {
						t.Errorf("prints:\n%s\nwant:\n%s", now, scene)
					}
				})
			}
			if now := strings.Join(printed, "\nscene "); *transcripts && len(printed) == len(scenes) && now != string(text) && !t.Failed() { // with -run some scenes are not played
				if err := os.WriteFile(file, []byte(now), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// play runs a scene, and returns it with its present output.
func play(t *testing.T, scene string) string {
	on := &stage{rig: newRig(t, &fakeReceiver{})}
	on.to.poison = func(s smp) bool { return on.bad[s.series] || on.bad[on.at(s)] }
	on.to.script = on.script
	on.cfg.Queue.MaxShards = 1
	var now []string
	lines := strings.Split(scene, "\n")
	for n, line := range lines {
		if strings.HasPrefix(line, "\t") {
			continue
		}
		if now = append(now, line); n == 0 || line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		for command := range strings.SplitSeq(line, ";") {
			words := strings.Fields(command)
			f := on.commands()[words[0]]
			if f == nil {
				t.Fatalf("%q is no command", words[0])
			}
			if change := f(words[1:]); change != nil {
				on.to.set(change)
			}
			if t.Failed() {
				t.Fatalf("in %q", command)
			}
		}
		for _, s := range on.out {
			now = append(now, "\t"+s)
		}
		on.out = nil
	}
	if on.running {
		on.end()
	}
	return strings.Join(now, "\n")
}

// series spells out names: a1-a3 is a1, a2 and a3.
func seriesOf(t testing.TB, word string) (names []string) {
	from, to, is := strings.Cut(word, "-")
	if !is {
		return []string{word}
	}
	prefix := strings.TrimRight(from, "0123456789")
	var a, b int
	if n, err := fmt.Sscanf(strings.TrimPrefix(from, prefix)+" "+strings.TrimPrefix(to, prefix), "%d %d", &a, &b); n != 2 || err != nil || b < a {
		t.Fatalf("%q is no range of series", word)
	}
	for ; a <= b; a++ {
		names = append(names, fmt.Sprint(prefix, a))
	}
	return names
}

// lacks returns the samples of the log that the receiver does not have, by series and round.
func (on *stage) lacks() (names []string) {
	for _, e := range on.log.entries {
		for _, s := range e.Samples {
			if x := smpOf(s); !on.to.has[x] {
				names = append(names, on.at(x))
			}
		}
	}
	slices.Sort(names)
	return names
}
