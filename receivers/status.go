package receivers

// Status describes a receiver for people.
type Status struct {
	Name    string
	Address string // listened on
	Protection
	Counts
}

// shown is one receiver as Status describes it.
type shown struct {
	name, address string
	guard         Protection
	gate          *Gate
}

// publish stores what Status shows from now on. s.mu must be held.
func (s *Set) publish() {
	list := make([]shown, 0, len(s.order))
	for _, name := range s.order {
		v := s.servers[name]
		list = append(list, shown{name, v.socket.tcp.Addr().String(), v.spec.guard, v.spec.Gate})
	}
	s.shown.Store(&list)
}

// Status describes the receivers in the order of the latest Apply. It waits for nothing: during an Apply it describes
// those before it.
func (s *Set) Status() []Status {
	list := s.shown.Load()
	if list == nil {
		return []Status{}
	}
	out := make([]Status, 0, len(*list))
	for _, v := range *list {
		out = append(out, Status{Name: v.name, Address: v.address, Protection: v.guard, Counts: v.gate.Counts()})
	}
	return out
}
