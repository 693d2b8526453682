package host

import "strings"

// newNVMe reads controllers and namespaces. Reading how much of a namespace is in use requires a command to the device.
func newNVMe(e *environment) reader {
	info := gauge("node_nvme_info", "What the controller is; always 1.")
	namespace := gauge("node_nvme_namespace_info", "State of the namespace; always 1.")
	capacity := gauge("node_nvme_namespace_capacity_bytes", "Capacity of the namespace.")
	size := gauge("node_nvme_namespace_size_bytes", "Size of the namespace.")
	used := gauge("node_nvme_namespace_used_bytes", "How much of the namespace is in use.")
	block := gauge("node_nvme_namespace_logical_block_size_bytes", "Logical block size of the namespace.")
	d := &devices{dir: e.sys("class/nvme"), guard: guard[samples]{limit: e.limit, panics: e.panics}}
	readNamespace := func(s *samples, device, name, dir string) {
		id := text(dir + "/nsid")
		if id == "" {
			id = name[strings.LastIndexByte(name, 'n')+1:]
		}
		state := text(dir + "/ana_state")
		if state == "" {
			state = "unknown"
		}
		labels := []string{"device", device, "nsid", id}
		s.add(namespace, 1, "ana_state", state, "device", device, "nsid", id)
		if sectors, ok := number(dir + "/size"); ok {
			s.add(size, sectors*512, labels...) // regardless of the logical block size
			s.add(capacity, sectors*512, labels...)
		}
		lbs, ok := number(dir + "/queue/logical_block_size")
		if !ok {
			return
		}
		s.add(block, lbs, labels...)
		if blocks, ok := number(dir + "/nuse"); ok {
			s.add(used, blocks*lbs, labels...)
		}
	}
	d.query = func(name string) samples {
		var s samples
		dir := d.dir + "/" + name
		s.add(info, 1, append([]string{"device", name}, texts(dir, "cntlid", "cntlid", "firmware_revision", "firmware_rev",
			"model", "model", "serial", "serial", "state", "state")...)...)
		children, err := list(dir)
		if err != nil {
			return s
		}
		for _, child := range children {
			// nvme0n1, or nvme0c1n1 for one path of several
			if rest, ok := strings.CutPrefix(child, name); ok && isNamespace(rest) {
				readNamespace(&s, name, child, dir+"/"+child)
			}
		}
		return s
	}
	return d
}

// isNamespace reports whether s is c<number>n<number> or n<number>.
func isNamespace(s string) bool {
	if path, rest, ok := strings.Cut(s, "n"); ok {
		_, isPath := unit(path, "c")
		_, isNumber := unit("n"+rest, "n")
		return isNumber && (path == "" || isPath)
	}
	return false
}
