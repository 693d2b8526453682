package raid

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// node is an object of storcli's JSON.
type node map[string]any

func (n node) at(key string) node {
	below, _ := n[key].(map[string]any)
	return below
}

// rows returns the objects of a list.
func (n node) rows(key string) (all []node) {
	list, _ := n[key].([]any)
	for _, v := range list {
		if row, ok := v.(map[string]any); ok {
			all = append(all, row)
		}
	}
	return all
}

// say returns a value as text without surrounding blanks; "" if it is missing or stands for nothing.
func (n node) say(key string) string {
	text := ""
	switch v := n[key].(type) {
	case string:
		text = strings.TrimSpace(v)
	case json.Number:
		text = v.String()
	}
	switch text {
	case "-", "N/A", "NA", "None":
		return ""
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// answer is what storcli answers for one controller.
type answer struct {
	index  int
	status node
	data   node   // the response, if it is an object
	list   []node // the response, if it is a list
}

// parseStorcli returns the answers by controller. storcli prints one list of controllers, whatever was asked.
func parseStorcli(out []byte) ([]answer, error) {
	start := bytes.IndexByte(out, '{')
	if start < 0 {
		return nil, refusal(string(out))
	}
	d := json.NewDecoder(bytes.NewReader(out[start:])) // ignores anything that follows
	d.UseNumber()
	var whole node
	if err := d.Decode(&whole); err != nil {
		return nil, fmt.Errorf("read the JSON: %w", err)
	}
	var all []answer
	for i, c := range whole.rows("Controllers") {
		a := answer{index: i, status: c.at("Command Status"), data: c.at("Response Data"), list: c.rows("Response Data")}
		if n, err := strconv.Atoi(a.status.say("Controller")); err == nil {
			a.index = n
		}
		all = append(all, a)
	}
	if len(all) == 0 {
		return nil, errors.New("read the JSON: it has no list of controllers")
	}
	return all, nil
}

// The questions to storcli, with nolog because it writes a file otherwise.
var (
	askControllers = []string{"/call", "show", "all", "J", "nolog"}
	askVolumes     = []string{"/call/vall", "show", "all", "J", "nolog"}
	askDisks       = []string{"/call/eall/sall", "show", "all", "J", "nolog"}
	askBare        = []string{"/call/sall", "show", "all", "J", "nolog"} // disks without an enclosure
	askRebuild     = []string{"/call/eall/sall", "show", "rebuild", "J", "nolog"}
	askPatrol      = []string{"/call", "show", "patrolread", "J", "nolog"}
)

// storcli is one reading of all controllers.
type storcli struct {
	volumes, disks map[int]node // by controller: what the questions about volumes and disks answer, merged
	rebuilds       map[int][]node
	patrols        map[int][]node
}

func readStorcli(ctx context.Context, run ask) ([]controller, error) {
	put := func(args []string) ([]answer, error) {
		out, err := run(ctx, args...)
		if err != nil {
			return nil, err
		}
		all, err := parseStorcli(out)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", strings.Join(args, " "), err)
		}
		return all, nil
	}
	first, err := put(askControllers)
	if err != nil {
		return nil, err
	}
	s, errs := storcli{make(map[int]node), make(map[int]node), make(map[int][]node), make(map[int][]node)}, []error(nil)
	keep := func(args []string, to func(a *answer)) {
		all, err := put(args)
		errs = append(errs, err)
		for i := range all {
			to(&all[i])
		}
	}
	if slices.ContainsFunc(first, func(a answer) bool { return len(a.data.rows("VD LIST")) > 0 }) {
		keep(askVolumes, func(a *answer) { merge(s.volumes, a) })
	}
	disk := func(fits func(d node) bool) bool {
		return slices.ContainsFunc(first, func(a answer) bool { return slices.ContainsFunc(a.data.rows("PD LIST"), fits) })
	}
	bare := func(d node) bool { return strings.HasPrefix(d.say("EID:Slt"), ":") }
	if disk(func(d node) bool { return !bare(d) }) {
		keep(askDisks, func(a *answer) { merge(s.disks, a) })
	}
	if disk(bare) {
		keep(askBare, func(a *answer) { merge(s.disks, a) })
	}
	if disk(func(d node) bool { return d.say("State") == "Rbld" }) {
		keep(askRebuild, func(a *answer) { s.rebuilds[a.index] = a.list })
	}
	keep(askPatrol, func(a *answer) { s.patrols[a.index] = a.data.rows("Controller Properties") })
	var found []controller
	for i := range first {
		if a := &first[i]; a.status.say("Status") == "Success" || len(a.data) > 0 {
			found = append(found, s.controller(a))
		} else if said := a.status.say("Description"); !strings.Contains(strings.ToLower(said), "no controller") {
			errs = append(errs, fmt.Errorf("controller %d: %w", a.index, refusal(cmp.Or(said, a.status.say("Status")))))
		}
	}
	return found, errors.Join(errs...)
}

func merge(into map[int]node, a *answer) {
	if into[a.index] == nil {
		into[a.index] = make(node)
	}
	for key, v := range a.data {
		into[a.index][key] = v
	}
}
