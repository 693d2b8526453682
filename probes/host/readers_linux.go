package host

// readerMakers has one entry for each of collectorNames.
func readerMakers() map[string]func(*environment) reader {
	return map[string]func(*environment) reader{
		"cpu":        newCPU,
		"meminfo":    newMeminfo,
		"loadavg":    newLoadavg,
		"stat":       newStat,
		"filesystem": newFilesystem,
		"diskstats":  newDiskstats,
		"netdev":     newNetdev,
	}
}
