package web

// mostRows bounds the rows of a kind: the page goes to each reader every two seconds. Those with problems come first.
const mostRows = 50

// leftOut counts what the page leaves out.
type leftOut struct{ Bad, Targets, Probes, Jobs, Intakes int }

// bound leaves out what goes beyond mostRows of each kind.
func (v *view) bound() {
	rows, opened := map[string]int{}, map[string]int{} // of a kind: rows, and things that these open to
	var shown []thing
	for _, t := range v.Things {
		if rows[t.Kind] == mostRows {
			v.Left.Bad += max(1, len(t.Names))
			continue
		}
		rows[t.Kind]++
		room := max(1, mostRows-opened[t.Kind])
		all := len(t.Targets) + len(t.Probes) + len(t.Jobs) + len(t.Intakes)
		t.Targets, t.Probes, t.Jobs, t.Intakes = first(t.Targets, room), first(t.Probes, room), first(t.Jobs, room), first(t.Intakes, room)
		n := len(t.Targets) + len(t.Probes) + len(t.Jobs) + len(t.Intakes)
		t.Left = all - n
		opened[t.Kind] += n
		shown = append(shown, t)
	}
	v.Things = shown
	v.Rows, v.Left.Targets = cut(v.Rows, mostRows-rows["target"])
	v.Probes, v.Left.Probes = cut(v.Probes, mostRows-rows["probe"])
	v.Well, v.Left.Jobs = cut(v.Well, mostRows-rows["scrape"])
	v.Intakes, v.Left.Intakes = cut(v.Intakes, mostRows-rows["receiver"])
}

func first[T any](all []T, most int) []T { return all[:min(len(all), most)] }

// cut returns the first ones, and how many it leaves out.
func cut[T any](all []T, most int) (shown []T, left int) {
	shown = first(all, most)
	return shown, len(all) - len(shown)
}

// showLeft says how many rows are left out, and where they are.
func showLeft(p *page, left int, what markup) {
	if left > 0 {
		p.number(`<p class="more">`, left, what)
		p.raw(`: <code>hwsagent status</code>, or <a href="/?all">all rows</a></p>` + "\n")
	}
}
