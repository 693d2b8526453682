package pushgateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/encoding/protowire"

	"hwsagent/internal/exposition"
)

// family is one pushed metric family. It is immutable.
type family struct {
	text   []byte // delimited protobuf
	kind   dto.MetricType
	series []uint64 // unique hashes of the labels of each series
}

// newFamily returns the family in a checked text, and its name.
func newFamily(text []byte) (name string, f family, err error) {
	message, n := protowire.ConsumeBytes(text)
	if n < 0 {
		return "", family{}, fmt.Errorf("read a family: %w", protowire.ParseError(n))
	}
	f.text = text
	if name, f.kind, err = headOf(message); err != nil {
		return "", family{}, err
	}
	err = exposition.Each(context.Background(), text, exposition.Protobuf, func(s *exposition.Sample) error {
		f.series = append(f.series, s.Labels.Hash())
		return nil
	})
	return name, f, err
}

// group holds the families pushed under one set of labels. It is immutable.
type group struct {
	labels   map[string]string
	families map[string]family // by name
	pushed   time.Time         // the last accepted push; zero if there was none
	failed   time.Time         // the last refused push; zero if there was none. At least one is not zero, unless deleted is set

	// ended holds families, as delimited protobuf, with series that a push or a deletion removed from the group: until
	// it is certain that the log has their stale markers, even over a kill. Their other series continue.
	ended []byte
	// deleted means that the group exists only until that is certain. It has no families.
	deleted bool
}

// unpushed reports whether the group, which may be nil, has only had refused pushes.
func (g *group) unpushed() bool { return g != nil && !g.deleted && g.pushed.IsZero() }

// own returns the hashes of the series that a group has in addition to the pushed ones.
func (g *group) own() []uint64 {
	return []uint64{ownLabels(g.labels, pushTime).Hash(), ownLabels(g.labels, failureTime).Hash()}
}

// series returns the hashes of all series that the group exposes.
func (g *group) series() iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		if g == nil || g.deleted {
			return
		}
		for _, hash := range g.own() {
			if !yield(hash) {
				return
			}
		}
		for _, f := range g.families {
			for _, hash := range f.series {
				if !yield(hash) {
					return
				}
			}
		}
	}
}

// after returns g as the successor of old: series of old that g lacks must be ended.
func (g *group) after(old *group) *group {
	if old == nil {
		return g
	}
	g.ended = slices.Clone(old.ended)
	goesOn := map[uint64]bool{}
	for hash := range g.series() {
		goesOn[hash] = true
	}
	for _, name := range slices.Sorted(maps.Keys(old.families)) {
		f := old.families[name]
		if slices.ContainsFunc(f.series, func(hash uint64) bool { return !goesOn[hash] }) {
			g.ended = append(g.ended, f.text...)
		}
	}
	return g
}

func (g *group) size() (n int64) {
	n = int64(len(g.ended))
	for name, f := range g.families {
		n += int64(len(name) + len(f.text))
	}
	for name, value := range g.labels {
		n += int64(len(name) + len(value))
	}
	return n
}

// body returns all families concatenated, sorted by name.
func (g *group) body() []byte {
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(g.families)) {
		b.Write(g.families[name].text)
	}
	return b.Bytes()
}

// key returns the same for two sets of labels exactly when they are equal.
func key(labels map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		fmt.Fprintf(&b, "%q=%q,", name, labels[name])
	}
	return b.String()
}

// header is the first line of a group's file; the families follow.
type header struct {
	Version  int               `json:"version"` // 1
	Labels   map[string]string `json:"labels"`
	Pushed   int64             `json:"pushed"` // milliseconds; 0: never
	Failed   int64             `json:"failed"`
	Deleted  bool              `json:"deleted,omitempty"`
	Bytes    int               `json:"bytes"`           // of the families
	Ended    int               `json:"ended,omitempty"` // how many of these bytes, at the end, are families with ended series
	Checksum uint32            `json:"crc32c"`
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func atMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

func encode(g *group) ([]byte, error) {
	body := append(g.body(), g.ended...)
	line, err := json.Marshal(header{
		Version: 1, Labels: g.labels, Pushed: millis(g.pushed), Failed: millis(g.failed),
		Deleted: g.deleted, Bytes: len(body), Ended: len(g.ended), Checksum: crc32.Checksum(body, castagnoli),
	})
	return append(append(line, '\n'), body...), err
}

func decode(text []byte) (*group, error) {
	line, body, _ := bytes.Cut(text, []byte("\n"))
	var h header
	if err := json.Unmarshal(line, &h); err != nil {
		return nil, fmt.Errorf("read its first line: %w", err)
	}
	switch {
	case h.Version != 1:
		return nil, fmt.Errorf("its version is %d, this build knows 1", h.Version)
	case len(body) != h.Bytes || h.Ended < 0 || h.Ended > h.Bytes || crc32.Checksum(body, castagnoli) != h.Checksum:
		return nil, errors.New("it is damaged")
	}
	g := &group{labels: h.Labels, families: map[string]family{}, pushed: atMillis(h.Pushed), failed: atMillis(h.Failed), deleted: h.Deleted}
	body, g.ended = body[:h.Bytes-h.Ended], body[h.Bytes-h.Ended:]
	for len(body) > 0 {
		_, n := protowire.ConsumeBytes(body)
		if n < 0 {
			return nil, fmt.Errorf("read a family: %w", protowire.ParseError(n))
		}
		name, f, err := newFamily(body[:n:n])
		if err != nil {
			return nil, err
		}
		g.families[name] = f
		body = body[n:]
	}
	return g, nil
}

// headOf reads the name and the type of a family: fields 1 and 3 of io.prometheus.client.MetricFamily. A family without
// a type is a counter, as in protobuf.
func headOf(family []byte) (name string, kind dto.MetricType, err error) {
	for len(family) > 0 {
		number, wire, n := protowire.ConsumeTag(family)
		if n < 0 {
			return "", 0, fmt.Errorf("read a family: %w", protowire.ParseError(n))
		}
		family = family[n:]
		if n = protowire.ConsumeFieldValue(number, wire, family); n < 0 {
			return "", 0, fmt.Errorf("read a family: %w", protowire.ParseError(n))
		}
		switch {
		case number == 1 && wire == protowire.BytesType:
			text, _ := protowire.ConsumeBytes(family)
			name = string(text)
		case number == 3 && wire == protowire.VarintType:
			v, _ := protowire.ConsumeVarint(family)
			kind = dto.MetricType(v) // an unknown type equals no other
		}
		family = family[n:]
	}
	if name == "" {
		return "", 0, errors.New("a family has no name")
	}
	return name, kind, nil
}
