package agent

// Names are the names of the targets and probes in a configuration file, in its order, for a
// shell that completes a command. Files that ${file:…} names are not read. Of a file that cannot
// be loaded there are none: `hwsagent check` shows its mistakes.
func Names(path string, env func(string) (string, bool)) (targets, probes []string) {
	cfg, _, err := loadFile(path, env, placeholder)
	if err != nil {
		return nil, nil
	}
	for _, t := range cfg.RemoteWrite {
		targets = append(targets, t.TargetName())
	}
	for _, p := range cfg.Probes {
		probes = append(probes, p.Name)
	}
	return targets, probes
}

// placeholder stands for the contents of a file that need not be there.
func placeholder(string) ([]byte, error) { return []byte("placeholder"), nil }
