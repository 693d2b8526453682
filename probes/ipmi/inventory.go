package ipmi

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// product describes a part as an inventory area does (Platform Management FRU Information Storage Definition, v1.0).
type product struct{ maker, name, part, serial, chassis string }

// maxInventory is how much of an inventory is read, in bytes; typical ones have 256 to 2048.
const maxInventory = 4096

// readInventory reads one part's inventory (sections 34.1, 34.2).
func readInventory(ctx context.Context, l link, device byte) (product, error) {
	info, err := l.ask(ctx, 0, netStorage, getAreaInfo, device)
	if err != nil {
		return product{}, err
	}
	if len(info) < 3 {
		return product{}, errShort
	}
	size := min(int(binary.LittleEndian.Uint16(info)), maxInventory)
	words := 1
	if info[2]&1 != 0 {
		words = 2 // the area is addressed by words
	}
	data := make([]byte, 0, size)
	for part := 16; len(data) < size; {
		at := len(data) / words
		answer, err := l.ask(ctx, 0, netStorage, readArea, device, byte(at), byte(at>>8), byte(min(part, size-len(data))/words))
		var refused completion
		if errors.As(err, &refused) && part == 16 && refused != notPresent {
			part = 8
			continue
		}
		if err != nil {
			return product{}, err
		}
		if len(answer) < 2 || answer[0] == 0 {
			break
		}
		got := answer[1:]
		data = append(data, got[:min(len(got), int(answer[0])*words)]...)
	}
	return parseInventory(data)
}

var errInventory = errors.New("the inventory is not in the format of IPMI")

// parseInventory parses the common header and the areas of chassis, board and product. Fields missing from the product area are
// taken from the board area.
func parseInventory(data []byte) (product, error) {
	if len(data) < 8 || data[0]&0xf != 1 || checksum(data[:7]) != data[7] {
		return product{}, errInventory
	}
	area := func(offset byte, fieldsAt int) []string {
		at := int(offset) * 8
		if offset == 0 || at+2 > len(data) {
			return nil
		}
		end := min(at+int(data[at+1])*8, len(data))
		if at+fieldsAt >= end {
			return nil
		}
		return fields(data[at+fieldsAt : end])
	}
	get := func(all []string, i int) string {
		if i < len(all) {
			return all[i]
		}
		return ""
	}
	chassis, board, unit := area(data[2], 3), area(data[3], 6), area(data[4], 3)
	p := product{
		maker: get(unit, 0), name: get(unit, 1), part: get(unit, 2), serial: get(unit, 4), chassis: get(chassis, 1),
	}
	for _, one := range []struct {
		to   *string
		from string
	}{{&p.maker, get(board, 0)}, {&p.name, get(board, 1)}, {&p.serial, get(board, 2)}, {&p.part, get(board, 3)}} {
		if *one.to == "" {
			*one.to = one.from
		}
	}
	return p, nil
}

// fields returns the texts of an area, up to the end marker C1h.
func fields(b []byte) []string {
	var all []string
	for len(b) > 0 && b[0] != 0xc1 && len(all) < 64 {
		n := int(b[0] & 0x3f)
		if 1+n > len(b) {
			break
		}
		all = append(all, field(b[0], b[1:1+n]))
		b = b[1+n:]
	}
	return all
}

// field decodes one text. Its length is in bytes, unlike that of a sensor's name.
func field(typeLength byte, b []byte) string {
	switch typeLength >> 6 {
	case 0: // binary
		return fmt.Sprintf("%x", b)
	case 1:
		return parseText(0x40|byte(min(len(b)*2, 31)), b)
	case 2:
		return parseText(0x80|byte(min(len(b)*8/6, 31)), b)
	}
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' {
			return -1
		}
		return r
	}, latin(b)))
}

// latin decodes ASCII and Latin 1.
func latin(b []byte) string {
	var s strings.Builder
	for _, c := range b {
		s.WriteRune(rune(c))
	}
	return s.String()
}
