package wire

import (
	"encoding/binary"
	"iter"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
)

// Form is how the labels of a series are written at one target: their differences from those in
// the log. Most series of a target have one of a few forms, which add the external labels at different places. It is
// immutable, and any goroutine may read it.
type Form struct {
	by [NumVersions]difference
}

// difference describes how a series' labels at the target differ from those in the log. It holds places, so that no names are
// compared when a request is written.
type difference struct {
	adds  []labels.Label // new labels, and those with another value; several forms share them
	edits []edit         // in ascending order of places
}

// edit is a place of a difference.
type edit struct {
	at    uint32 // labels of the log before this one are unchanged since the edit before
	adds  bool   // the next of the new labels comes there
	drops bool   // the log's label there is left out
}

// AddsAs reports whether f and g only add labels in requests of remote write 1.0, and both the same ones. Then two series
// with these forms have the same labels at the target only if their labels in the log are the same.
func (f *Form) AddsAs(g *Form) bool {
	drops := func(e edit) bool { return e.drops }
	a, b := &f.by[V1], &g.by[V1]
	return slices.Equal(a.adds, b.adds) && !slices.ContainsFunc(a.edits, drops) && !slices.ContainsFunc(b.edits, drops)
}

// Labels returns the labels as in requests of that version. ls are the labels in the log.
func (f *Form) Labels(v Version, ls []labels.Label) labels.Labels {
	b := labels.NewScratchBuilder(len(ls) + len(f.by[v].adds))
	for part := range f.parts(v, ls) {
		for _, l := range part {
			b.Add(l.Name, l.Value)
		}
	}
	return b.Labels()
}

// parts yields the labels as in requests of that version, several at a time, in ascending order.
func (f *Form) parts(v Version, ls []labels.Label) iter.Seq[[]labels.Label] {
	return func(yield func([]labels.Label) bool) {
		at, adds := uint32(0), f.by[v].adds
		for _, e := range f.by[v].edits {
			if !yield(ls[at:e.at]) {
				return
			}
			if e.adds {
				if !yield(adds[:1]) {
					return
				}
				adds = adds[1:]
			}
			if at = e.at; e.drops {
				at++
			}
		}
		yield(ls[at:])
	}
}

// maxFormBytes bounds the memory of the forms that Forms keeps for later series. If
// rules give each series a form of its own, keeping more has no use. Hundreds of sets of label names fit.
const maxFormBytes = 256 << 10

// Forms has one [Form] for all series of a target whose labels change in the same way at the same places. It
// may discard forms: then equal ones are no longer shared, which only costs memory. Not safe
// for concurrent use.
type Forms struct {
	newest Version
	shared map[string]*Form // by the encoding of their edits
	bytes  int              // approximate memory of all shared forms
	adds   []labels.Label   // of the difference that was made last: most have the same

	scratch labels.ScratchBuilder
	key     []byte // scratch
}

// NewForms makes the forms of a target that gets requests of the version newest and of earlier ones.
func NewForms(newest Version) *Forms {
	return &Forms{newest: newest, shared: map[string]*Form{}, scratch: labels.NewScratchBuilder(16)}
}

// Of returns the form of a series with the labels from in the log and the labels to
// at the target. No value in to may be empty, since an empty label does not exist. legal are the labels as 1.0
// sends them. form is nil if there are none.
func (f *Forms) Of(from []labels.Label, to labels.Labels) (form *Form, legal labels.Labels) {
	legal = f.legal(to)
	if legal.IsEmpty() {
		return nil, legal
	}
	f.key = appendEdits(append(f.key[:0], 0, 0, 0, 0), from, legal)
	second := len(f.key)
	binary.BigEndian.PutUint32(f.key, uint32(second)) // #nosec G115 -- labels are far below 4 GiB
	if f.newest == V2 {
		f.key = appendEdits(f.key, from, f.valid(to))
	}
	if form = f.shared[string(f.key)]; form != nil {
		return form, legal
	}
	key := string(f.key)
	form = &Form{}
	form.by[V1] = f.differenceOf(key[4:second])
	if form.by[V2] = form.by[V1]; f.newest == V2 && key[4:second] != key[second:] {
		form.by[V2] = f.differenceOf(key[second:])
	}
	const rest = 160 // bytes, approximately: of the form and its map entry
	size := rest + len(key) + form.by[V1].size() + form.by[V2].size()
	if f.bytes += size; f.bytes > maxFormBytes {
		clear(f.shared)
		f.bytes = size
	}
	f.shared[key] = form
	return form, legal
}

// appendEdits appends the edits that turn from into to. Each is its place, whether it drops a label, and the name and the value
// after their lengths.
func appendEdits(dst []byte, from []labels.Label, to labels.Labels) []byte {
	at := 0
	edit := func(drops bool, l labels.Label) {
		place := uint64(at) << 1 // #nosec G115 -- a place in a slice
		if drops {
			place |= 1
			at++
		}
		dst = binary.AppendUvarint(dst, place)
		dst = append(binary.AppendUvarint(dst, uint64(len(l.Name))), l.Name...)
		dst = append(binary.AppendUvarint(dst, uint64(len(l.Value))), l.Value...)
	}
	to.Range(func(l labels.Label) {
		for at < len(from) && from[at].Name < l.Name {
			edit(true, labels.Label{})
		}
		switch {
		case at == len(from) || from[at].Name != l.Name:
			edit(false, l)
		case from[at].Value != l.Value:
			edit(true, l)
		default:
			at++
		}
	})
	for at < len(from) {
		edit(true, labels.Label{})
	}
	return dst
}

// differenceOf decodes the result of appendEdits. The labels share the text's memory.
func (f *Forms) differenceOf(text string) (d difference) {
	for text != "" {
		var place int
		var l labels.Label
		place, text = cutNumber(text)
		l.Name, text = cutText(text)
		if l.Value, text = cutText(text); l.Value != "" {
			d.adds = append(d.adds, l)
		}
		d.edits = append(d.edits, edit{at: uint32(place >> 1), adds: l.Value != "", drops: place&1 != 0}) // #nosec G115 -- a place in a slice
	}
	d.adds, d.edits = slices.Clip(d.adds), slices.Clip(d.edits)
	if slices.Equal(d.adds, f.adds) {
		d.adds = f.adds
	}
	f.adds = d.adds
	return d
}

// size is approximately the memory of the difference, in bytes, as if its labels were not shared.
func (d *difference) size() int { return 32*len(d.adds) + 8*len(d.edits) }

// cutText cuts a length-prefixed text off the front of s.
func cutText(s string) (text, rest string) {
	n, s := cutNumber(s)
	return s[:n], s[n:]
}

// cutNumber cuts a varint off the front of s.
func cutNumber(s string) (n int, rest string) {
	at := 0
	for ; s[at] >= 0x80; at++ {
		n |= int(s[at]&0x7f) << (7 * at)
	}
	return n | int(s[at])<<(7*at), s[at+1:]
}
