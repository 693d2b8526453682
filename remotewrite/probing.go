package remotewrite

// How an isolation finds out what the receiver does with the good part of a request that it
// refuses.

// startProbing picks samples of the refused round, spread over it, that have
// successors. It reports whether there are enough to tell anything.
func (p *isolation) startProbing() bool {
	var have []int
	for _, i := range p.sent.at {
		if p.then[i] >= 0 {
			have = append(have, i)
		}
	}
	const probes = 3
	if len(have) < probes {
		return false
	}
	p.probes = []int{have[len(have)/2], have[len(have)-1], have[0]}
	p.probing = true
	return true
}

// probe returns the next sample to find out the receiver's kind with.
func (p *isolation) probe() (piece, bool) {
	switch {
	case len(p.probes) > 0:
		i := p.probes[0]
		p.probes = p.probes[1:]
		return piece{at: []int{i}}, true
	case p.walk >= 0:
		return piece{at: []int{p.walk}}, true
	}
	return piece{}, false
}

// probed takes what came of a probe. One may mislead: it is bad itself, or its successor
// is, so that at a receiver that keeps the good part it is the newest.
func (p *isolation) probed(taken bool) {
	i := p.sent.at[0]
	switch {
	case p.walk >= 0:
		p.walked(i, taken)
		return
	case taken:
		p.yes++
	default:
		p.no++
		p.refusedOlder(i)
		p.walks = append(p.walks, i)
	}
	switch {
	case p.yes == 2:
		p.storedNothing()
	case p.no == 2:
		p.nextWalk()
	}
}

// probedBad takes a probe, which was refused alone and not for its order, for bad. It says nothing
// about what the receiver keeps.
func (p *isolation) probedBad() {
	i := p.sent.at[0]
	p.done[i] = true
	p.bad = append(p.bad, i)
	if p.walk < 0 {
		return
	}
	switch p.walk = p.then[i]; {
	case p.reached: // the one before was the newest that is stored
		p.conclude()
	case p.walk < 0:
		p.nextWalk()
	}
}

// nextWalk follows the series of another refused probe.
func (p *isolation) nextWalk() {
	if len(p.walks) == 0 { // whole series are refused: that tells nothing
		p.probing, p.walk = false, -1
		p.bad = append(p.bad, p.older...)
		p.older = nil
		return
	}
	p.walk, p.reached, p.walks = p.then[p.walks[0]], false, p.walks[1:]
}

// walked takes what came of the sample i of a series that is followed.
func (p *isolation) walked(i int, taken bool) {
	p.walk = p.then[i]
	switch {
	case taken && p.walk < 0 && !p.reached:
		p.conclude() // the newest alone is taken: it was stored, and the others
	case taken && (p.reached || p.walk < 0):
		p.storedNothing()
	case taken:
		p.reached = true
	case p.reached: // the one before was the newest that is stored: this one is bad
		p.done[i] = true
		p.bad = append(p.bad, i)
		p.conclude()
	default:
		if p.refusedOlder(i); p.walk < 0 {
			p.nextWalk()
		}
	}
}

// refusedOlder notes a sample that was refused alone, and may be older than what is stored.
func (p *isolation) refusedOlder(i int) {
	p.done[i] = true
	p.older = append(p.older, i)
}

// storedNothing goes on at a receiver of which older samples are taken beside newer ones of
// their series: nothing had been stored. What was refused alone was bad.
func (p *isolation) storedNothing() {
	p.kind, p.probing, p.walk, p.probes = rollsBack, false, -1, nil
	p.bad = append(p.bad, p.older...)
	p.older = nil
}

// conclude goes on at a receiver that kept the good part: only the newest sample of
// each series tells whether the series is good.
func (p *isolation) conclude() {
	p.kind, p.probing, p.walk, p.probes = keepsGood, false, -1, nil
	var newest []int
	for i := range p.then {
		if p.done[i] {
			continue
		}
		if p.then[i] < 0 {
			newest = append(newest, i)
		} else {
			p.done[i] = true
			p.older = append(p.older, i)
		}
	}
	p.todo, p.rounds = nil, nil
	if len(newest) > 0 {
		p.todo = []piece{{at: newest, bad: p.known && len(p.older) == 0}} // one round
	}
}
