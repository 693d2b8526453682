package wire

import (
	"encoding/binary"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
)

// Form is how the labels of a series are written at one target: their differences from those in
// the log. Most series of a target have the same form, which adds the external labels. It is
// immutable, and any goroutine may read it.
type Form struct {
	// changes are per version, in ascending order of names: labels with another value and new labels; a
	// removed label has an empty value. Labels of the log that are not named stay unchanged.
	changes [NumVersions][]labels.Label
}

// Changes is the number of labels that are new, have another value, or are removed in requests of remote write 1.0.
func (f *Form) Changes() int { return len(f.changes[V1]) }

// Labels returns the labels as in requests of that version. ls are the labels in the log.
func (f *Form) Labels(v Version, ls []labels.Label) labels.Labels {
	b := labels.NewScratchBuilder(len(ls) + len(f.changes[v]))
	f.each(v, ls, func(l labels.Label) { b.Add(l.Name, l.Value) })
	return b.Labels()
}

// each calls emit for each label as in requests of that version, in ascending order.
func (f *Form) each(v Version, ls []labels.Label, emit func(labels.Label)) {
	changes := f.changes[v]
	for _, l := range ls {
		same := false
		for len(changes) > 0 && changes[0].Name <= l.Name && !same {
			c := changes[0]
			changes = changes[1:]
			if c.Value != "" {
				emit(c)
			}
			same = c.Name == l.Name
		}
		if !same {
			emit(l)
		}
	}
	for _, c := range changes {
		if c.Value != "" {
			emit(c)
		}
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
	shared map[string]*Form // by the encoding of their changes
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
	f.key = f.appendChanges(append(f.key[:0], 0, 0, 0, 0), from, legal)
	second := len(f.key)
	binary.BigEndian.PutUint32(f.key, uint32(second)) // #nosec G115 -- labels are far below 4 GiB
	if f.newest == V2 {
		f.key = f.appendChanges(f.key, from, f.valid(to))
	}
	if form = f.shared[string(f.key)]; form != nil {
		return form, legal
	}
	key := string(f.key)
	form = &Form{}
	form.changes[V1] = changesOf(key[4:second])
	if form.changes[V2] = form.changes[V1]; f.newest == V2 && key[4:second] != key[second:] {
		form.changes[V2] = changesOf(key[second:])
	}
	const label, rest = 32, 128 // bytes, approximately: of a change, and of the form and its map entry
	size := len(key) + label*(len(form.changes[V1])+len(form.changes[V2])) + rest
	if f.bytes += size; f.bytes > maxFormBytes {
		clear(f.shared)
		f.bytes = size
	}
	f.shared[key] = form
	return form, legal
}

// appendChanges appends the changes that turn from into to; each name and value is preceded by its
// length.
func (f *Forms) appendChanges(dst []byte, from []labels.Label, to labels.Labels) []byte {
	change := func(name, value string) {
		dst = append(binary.AppendUvarint(dst, uint64(len(name))), name...)
		dst = append(binary.AppendUvarint(dst, uint64(len(value))), value...)
	}
	to.Range(func(l labels.Label) {
		for len(from) > 0 && from[0].Name < l.Name {
			change(from[0].Name, "")
			from = from[1:]
		}
		if len(from) > 0 && from[0].Name == l.Name {
			same := from[0].Value == l.Value
			if from = from[1:]; same {
				return
			}
		}
		change(l.Name, l.Value)
	})
	for _, l := range from {
		change(l.Name, "")
	}
	return dst
}

// changesOf decodes the result of appendChanges. The changes share the text's memory.
func changesOf(text string) (all []labels.Label) {
	var l labels.Label
	for text != "" {
		l.Name, text = cutText(text)
		l.Value, text = cutText(text)
		all = append(all, l)
	}
	return slices.Clip(all)
}

// cutText cuts a length-prefixed text off the front of s.
func cutText(s string) (text, rest string) {
	n, at := 0, 0
	for ; s[at] >= 0x80; at++ {
		n |= int(s[at]&0x7f) << (7 * at)
	}
	n |= int(s[at]) << (7 * at)
	at++
	return s[at : at+n], s[at+n:]
}
