package nvidia

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Bounds of the document: 16 GPUs with all their processes have about 20,000 elements.
const (
	maxNodes = 500_000
	maxDepth = 32
)

// node is an element.
type node struct {
	name string
	id   string // the attribute id
	text string
	kids []*node
}

// parse reads the document that nvidia-smi -q -x prints. It skips lists that are not needed.
func parse(document []byte) (*node, error) {
	in := xml.NewDecoder(bytes.NewReader(document))
	in.Strict = false
	in.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil }
	root := &node{}
	stack := []*node{root}
	for n := 0; ; {
		token, err := in.Token()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("read the XML of nvidia-smi: %w", err)
		}
		top := stack[len(stack)-1]
		switch e := token.(type) {
		case xml.StartElement:
			if n++; n > maxNodes || len(stack) > maxDepth {
				return nil, errors.New("read the XML of nvidia-smi: it has too many elements")
			}
			kid := &node{name: e.Name.Local}
			for _, a := range e.Attr {
				if a.Name.Local == "id" {
					kid.id = valid(a.Value)
				}
			}
			stack = append(stack, kid)
			if kid.name != "supported_clocks" && kid.name != "accounted_processes" {
				top.kids = append(top.kids, kid)
			}
		case xml.EndElement:
			if len(stack) > 1 {
				stack = stack[:len(stack)-1]
			}
		case xml.CharData:
			if len(stack) > 1 {
				top.text = valid(strings.TrimSpace(top.text + string(e)))
			}
		}
	}
	log := root.at("nvidia_smi_log")
	if log == nil {
		return nil, errors.New("read the XML of nvidia-smi: it has no element nvidia_smi_log")
	}
	return log, nil
}

func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// at returns the element at a path of names, with slashes between them; nil if there is none.
func (n *node) at(path string) *node {
	for name := range strings.SplitSeq(path, "/") {
		if n = n.kid(name); n == nil {
			return nil
		}
	}
	return n
}

func (n *node) kid(name string) *node {
	for _, k := range n.kids {
		if k.name == name {
			return k
		}
	}
	return nil
}

// all returns the children with that name.
func (n *node) all(name string) []*node {
	var found []*node
	if n == nil {
		return nil
	}
	for _, k := range n.kids {
		if k.name == name {
			found = append(found, k)
		}
	}
	return found
}

// say returns the first text at one of the paths that is not empty.
func (n *node) say(paths ...string) string {
	for _, path := range paths {
		if k := n.at(path); k != nil && !empty(k.text) {
			return k.text
		}
	}
	return ""
}

// empty reports whether a text means that there is no value.
func empty(text string) bool {
	switch text {
	case "", "N/A", "[N/A]", "None", "Not Supported", "[Not Supported]", "Requested functionality has been deprecated":
		return true
	}
	return false
}

// units are factors to the base unit.
var units = map[string]float64{
	"": 1, "%": 0.01, "C": 1, "W": 1, "MiB": 1 << 20, "MHz": 1e6, "mV": 1e-3, "us": 1e-6, "KB/s": 1e3, "MB/s": 1e6, "bank(s)": 1, "GB/s": 1e9,
}

// number returns the first of the values at the paths that is a number, in its base unit.
func (n *node) number(paths ...string) (float64, bool) {
	for _, path := range paths {
		if k := n.at(path); k != nil {
			if v, ok := number(k.text); ok {
				return v, true
			}
		}
	}
	return 0, false
}

func number(text string) (float64, bool) {
	digits, unit, _ := strings.Cut(text, " ")
	factor, known := units[strings.TrimSpace(unit)]
	v, err := strconv.ParseFloat(strings.TrimSuffix(digits, "x"), 64)   // 16x is a link with 16 lanes
	if err != nil || !known || strings.ContainsAny(digits, "nNiIpP_") { // rules out nan, inf, hexadecimal
		return 0, false
	}
	switch { // division keeps the digits of a percentage
	case factor < 1:
		return v / (1 / factor), true
	}
	return v * factor, true
}
