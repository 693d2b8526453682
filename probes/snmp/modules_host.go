package snmp

import "slices"

// hostModule is HOST-RESOURCES-MIB (RFC 2790): the groups hrSystem, hrStorage and hrDevice.
// It leaves out installed and running software (hrSWInstalled, hrSWRun), which is inventory.
var hostModule = module{
	walk: []string{"1.3.6.1.2.1.25.1", "1.3.6.1.2.1.25.2", "1.3.6.1.2.1.25.3"},
	metrics: slices.Concat(
		table("1.3.6.1.2.1.25.1", nil, nil,
			column{"1", "hrSystemUptime", typeGauge, "Hundredths of a second since the host was started."},
			column{"2", "hrSystemDate", typeDateAndTime, "The host's date and time in seconds since 1970."},
			column{"3", "hrSystemInitialLoadDevice", typeGauge, "hrDeviceIndex of the device to start from."},
			column{"4", "hrSystemInitialLoadParameters", typeOctetString, "Parameters given to the operating system at its start."},
			column{"5", "hrSystemNumUsers", typeGauge, "Number of user sessions."},
			column{"6", "hrSystemProcesses", typeGauge, "Processes loaded or running."},
			column{"7", "hrSystemMaxProcesses", typeGauge, "Highest number of processes; 0 means no limit."},
		),
		table("1.3.6.1.2.1.25.2", nil, nil,
			column{"2", "hrMemorySize", typeGauge, "Main memory in kilobytes."}),
		table("1.3.6.1.2.1.25.2.3.1", storageIndexes, storageLookups,
			column{"4", "hrStorageAllocationUnits", typeGauge, "Bytes in one allocation unit."},
			column{"5", "hrStorageSize", typeGauge, "Size in allocation units."},
			column{"6", "hrStorageUsed", typeGauge, "Used space in allocation units."},
			column{"7", "hrStorageAllocationFailures", typeCounter, "Requests for storage that could not be met."},
		),
		table("1.3.6.1.2.1.25.3.2.1", deviceIndexes, deviceLookups,
			column{"4", "hrDeviceID", typeOctetString, "The vendor's identifier for the device."},
			column{"5", "hrDeviceStatus", typeGauge, "State: 1 unknown, 2 running, 3 warning, 4 testing, 5 down."},
			column{"6", "hrDeviceErrors", typeCounter, "Errors found on the device."},
		),
		table("1.3.6.1.2.1.25.3.3.1", deviceIndexes, deviceLookups,
			column{"2", "hrProcessorLoad", typeGauge, "Percentage of the last minute in which the processor was not idle."}),
		table("1.3.6.1.2.1.25.3.4.1", deviceIndexes, deviceLookups,
			column{"1", "hrNetworkIfIndex", typeGauge, "ifIndex of the network device."}),
		withEnum(table("1.3.6.1.2.1.25.3.5.1", deviceIndexes, deviceLookups,
			column{"1", "hrPrinterStatus", typeEnumAsStateSet, "The state of the printer."},
			column{"2", "hrPrinterDetectedErrorState", typeOctetString, "Bits for paper, toner, door, jam, offline and service."},
		), "hrPrinterStatus", map[int]string{1: "other", 2: "unknown", 3: "idle", 4: "printing", 5: "warmup"}),
		oneIfTrue(table("1.3.6.1.2.1.25.3.6.1", deviceIndexes, deviceLookups,
			column{"1", "hrDiskStorageAccess", typeGauge, "1 read and write, 2 read only."},
			column{"2", "hrDiskStorageMedia", typeGauge, "1 other, 2 unknown, 3 hard disk, 4 floppy disk, 5 to 7 optical, 8 RAM disk."},
			column{"3", "hrDiskStorageRemoveble", typeGauge, "1 if the medium can be removed, 0 if not."},
			column{"4", "hrDiskStorageCapacity", typeGauge, "Size in kilobytes."},
		), "hrDiskStorageRemoveble"),
		table("1.3.6.1.2.1.25.3.7.1", partitionIndexes, deviceLookups,
			column{"1", "hrPartitionIndex", typeGauge, "The partition's number."},
			column{"2", "hrPartitionLabel", typeOctetString, "The partition's label."},
			column{"3", "hrPartitionID", typeOctetString, "The operating system's identifier for the partition."},
			column{"4", "hrPartitionSize", typeGauge, "Size in kilobytes."},
			column{"5", "hrPartitionFSIndex", typeGauge, "hrFSIndex of the file system on it."},
		),
		table("1.3.6.1.2.1.25.3.8.1", fsIndexes, nil,
			column{"1", "hrFSIndex", typeGauge, "The file system's number."},
			column{"2", "hrFSMountPoint", typeOctetString, "The mount point of the file system."},
			column{"3", "hrFSRemoteMountPoint", typeOctetString, "The server and path of a remote file system."},
			column{"4", "hrFSType", typeOctetString, "The kind of file system."},
			column{"5", "hrFSAccess", typeGauge, "1 read and write, 2 read only."},
			column{"6", "hrFSBootable", typeGauge, "1 if the host can start from it, 2 if not."},
			column{"7", "hrFSStorageIndex", typeGauge, "hrStorageIndex of the file system."},
			column{"8", "hrFSLastFullBackupDate", typeDateAndTime, "Last full backup in seconds since 1970."},
			column{"9", "hrFSLastPartialBackupDate", typeDateAndTime, "Last partial backup in seconds since 1970."},
		),
	),
}

var (
	storageIndexes = []index{{labelname: "hrStorageIndex", typ: typeGauge}}
	storageLookups = []lookup{
		{labels: []string{"hrStorageIndex"}, labelname: "hrStorageDescr", oid: "1.3.6.1.2.1.25.2.3.1.3", typ: typeDisplayString},
		{labels: []string{"hrStorageIndex"}, labelname: "hrStorageType", oid: "1.3.6.1.2.1.25.2.3.1.2", typ: typeOctetString},
	}
	deviceIndexes = []index{{labelname: "hrDeviceIndex", typ: typeGauge}}
	deviceLookups = []lookup{
		{labels: []string{"hrDeviceIndex"}, labelname: "hrDeviceDescr", oid: "1.3.6.1.2.1.25.3.2.1.3", typ: typeDisplayString},
		{labels: []string{"hrDeviceIndex"}, labelname: "hrDeviceType", oid: "1.3.6.1.2.1.25.3.2.1.2", typ: typeOctetString},
	}
	partitionIndexes = append(slices.Clone(deviceIndexes), index{labelname: "hrPartitionIndex", typ: typeGauge})
	fsIndexes        = []index{{labelname: "hrFSIndex", typ: typeGauge}}
)

// oneIfTrue maps a TruthValue (RFC 2579: 1 true, 2 false) to 1 or 0.
func oneIfTrue(ms []metric, name string) []metric {
	for i := range ms {
		if ms[i].name == name {
			ms[i].scale, ms[i].offset = -1, 2
		}
	}
	return ms
}
