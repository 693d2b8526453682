package top

import (
	"math"
	"strings"
)

// key is what a person typed.
type key int

const (
	none key = iota // nothing, or not yet a whole key
	quit
	up
	down
	pageUp
	pageDown
	start
	end
)

// lines returns by how many lines a key scrolls a screen of so many rows.
func (k key) lines(rows int) int {
	page := max(1, rows-minRows)
	return map[key]int{up: -1, down: 1, pageUp: -page, pageDown: page, start: math.MinInt32, end: math.MaxInt32}[k]
}

// interrupt is Ctrl-C as read from a terminal in raw mode.
const interrupt = 0x03

// keys reads keys from the bytes of a terminal: those of ECMA-48 and xterm, and the letters of less.
type keys struct{ sequence string } // an escape sequence that has not ended

// next returns the key that ends with a byte.
func (k *keys) next(b byte) key {
	switch {
	case b == 0x1b:
		k.sequence = "\x1b"
		return none
	case k.sequence == "\x1b" && (b == '[' || b == 'O'):
		k.sequence = "\x1b["
		return none
	case strings.HasPrefix(k.sequence, "\x1b["):
		whole := k.sequence + string(rune(b))
		if b < 0x40 && len(whole) < 16 {
			k.sequence = whole
			return none
		}
		k.sequence = ""
		return map[string]key{
			"\x1b[A": up, "\x1b[B": down, "\x1b[5~": pageUp, "\x1b[6~": pageDown,
			"\x1b[H": start, "\x1b[F": end, "\x1b[1~": start, "\x1b[4~": end,
		}[whole]
	}
	k.sequence = ""
	return map[byte]key{'q': quit, 'Q': quit, interrupt: quit, 'k': up, 'j': down, 'b': pageUp, ' ': pageDown, 'f': pageDown, 'g': start, 'G': end}[b]
}
