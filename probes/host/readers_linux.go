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
		"vmstat":     newVmstat,
		"time":       newClock,
		"timex":      newTimex,
		"uname":      newUname,
		"os":         newOSRelease,
		"filefd":     newFileFD,
		"entropy":    newEntropy,
		"pressure":   newPressure,
		"sockstat":   newSockstat,
		"netstat":    newNetstat,
		"conntrack":  newConntrack,
		"softnet":    newSoftnet,
		"schedstat":  newSchedstat,
		"arp":        newARP,
		"udp_queues": newUDPQueues,
	}
}
