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
	edits [NumVersions][]edit // in ascending order of places
}

// edit is a place of differences. It says where they are, so that no names are compared when a request is written.
type edit struct {
	at    int            // labels of the log before this one are unchanged since the edit before
	drops bool           // the log's label at that place
	adds  []labels.Label // come at that place; one at most
}

// AddsAs reports whether f and g only add labels in requests of remote write 1.0, and both the same ones. Then two series
// with these forms have the same labels at the target only if their labels in the log are the same.
func (f *Form) AddsAs(g *Form) bool {
	return slices.EqualFunc(f.edits[V1], g.edits[V1], func(a, b edit) bool { return !a.drops && !b.drops && slices.Equal(a.adds, b.adds) })
}

// Labels returns the labels as in requests of that version. ls are the labels in the log.
func (f *Form) Labels(v Version, ls []labels.Label) labels.Labels {
	b := labels.NewScratchBuilder(len(ls) + len(f.edits[v]))
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
		at := 0
		for i := range f.edits[v] {
			e := &f.edits[v][i]
			if !yield(ls[at:e.at]) || !yield(e.adds) {
				return
			}
			if at = e.at; e.drops {
				at++
			}
		}
		yield(ls[at:])
	}
}

// maxFormBytes bounds the memory of the forms that Forms keeps for later series. If
// rules give each series a form of its own, keeping more has no use.
const maxFormBytes = 256 << 10

// Forms has one [Form] for all series of a target whose labels change in the same way. It
// may discard forms: then equal ones are no longer shared, which only costs memory. Not safe
// for concurrent use.
type Forms struct {
	newest Version
	shared map[string]*Form // by the encoding of their edits
	bytes  int              // approximate memory of all shared forms

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
	form.edits[V1] = editsOf(key[4:second])
	if form.edits[V2] = form.edits[V1]; f.newest == V2 && key[4:second] != key[second:] {
		form.edits[V2] = editsOf(key[second:])
	}
	const each, rest = 72, 128 // bytes, approximately: of an edit, and of the form and its map entry
	size := len(key) + each*(len(form.edits[V1])+len(form.edits[V2])) + rest
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

// editsOf decodes the result of appendEdits. The edits share the text's memory.
func editsOf(text string) (all []edit) {
	for text != "" {
		var e edit
		var place int
		place, text = cutNumber(text)
		e.at, e.drops = place>>1, place&1 != 0
		var l labels.Label
		l.Name, text = cutText(text)
		if l.Value, text = cutText(text); l.Value != "" {
			e.adds = []labels.Label{l}
		}
		all = append(all, e)
	}
	return slices.Clip(all)
}

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
