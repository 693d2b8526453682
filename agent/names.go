package agent

// Names returns the names of the targets and probes in a configuration file, in order, for a shell that completes a
// command. It does not read files named by ${file:…}. For a file that cannot be loaded it returns none; `hwsagent
// check` shows the mistakes.
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

// placeholder stands for the contents of a file that need not exist.
func placeholder(string) ([]byte, error) { return []byte("placeholder"), nil }
