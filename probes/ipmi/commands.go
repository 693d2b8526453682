package ipmi

// Network functions (table 5-1) and commands (appendix G).
const (
	netChassis = 0x00
	netSensor  = 0x04
	netApp     = 0x06
	netStorage = 0x0a
	netGroup   = 0x2c

	getDeviceID      = 0x01 // App
	getSystemGUID    = 0x37
	setPrivilege     = 0x3b
	closeSession     = 0x3c
	getChassis       = 0x01 // Chassis
	getFactors       = 0x23 // Sensor
	getThresholds    = 0x27
	getReading       = 0x2d
	getRepository    = 0x20 // Storage
	reserveRecords   = 0x22
	getRecord        = 0x23
	getDeviceRecords = 0x20 // Sensor: the records of a BMC without a repository
	reserveDevice    = 0x22
	getDeviceRecord  = 0x21
	getAreaInfo      = 0x10 // Storage, FRU
	readArea         = 0x11
	getLogInfo       = 0x40 // Storage, SEL
	getLogEntry      = 0x43
	getPower         = 0x02 // DCMI 1.5, section 6.6.1
	groupDCMI        = 0xdc
)
