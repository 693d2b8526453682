package snmp

import "slices"

// rows are the labels of the rows of one table, in the order of the rows. All columns of a table share them. Its memory is used again.
type rows struct {
	all  []row
	next int // the row that the next variable probably has
	// strays are the rows that came out of order, by the key of their index; nil while there are none.
	strays map[string][]string
}

// row is the index of a row, and its labels: name, value, name, value, ….
type row struct {
	index oid
	pairs []string
}

// find returns the labels of a row.
func (r *rows) find(index oid) (pairs []string, ok bool) {
	if r.next < len(r.all) && slices.Equal(r.all[r.next].index, index) {
		r.next++
		return r.all[r.next-1].pairs, true
	}
	if i, found := slices.BinarySearchFunc(r.all, index, func(x row, o oid) int { return x.index.compare(o) }); found {
		r.next = i + 1
		return r.all[i].pairs, true
	}
	if r.strays == nil {
		return nil, false
	}
	var buf [4 * 32]byte
	pairs, ok = r.strays[string(index.appendKey(buf[:0]))]
	return pairs, ok
}

// add adds a row that find has not found.
func (r *rows) add(index oid, pairs []string) {
	if n := len(r.all); n > 0 && index.compare(r.all[n-1].index) < 0 {
		if r.strays == nil {
			r.strays = map[string][]string{}
		}
		r.strays[index.key()] = pairs
		return
	}
	r.all = append(r.all, row{index, pairs})
	r.next = len(r.all)
}

// reset empties r but keeps its memory.
func (r *rows) reset() {
	clear(r.all)
	*r = rows{all: r.all[:0]}
}
