package hw

// Prefix begins every metric and every label of the vocabulary.
const Prefix = "hw_"

// Labels of every component.
const (
	LabelID     = "hw_id"
	LabelName   = "hw_name"
	LabelParent = "hw_parent" // the ID of the component that contains this one
	LabelType   = "hw_type"   // a Kind, of hw_component_info and hw_status
	LabelState  = "hw_state"  // of hw_status
)

// Labels that tell readings of one metric and component apart. docs/reference/hardware.md lists their values.
const (
	LabelBatteryState   = "hw_battery_state"
	LabelDiskState      = "hw_physical_disk_state"
	LabelGPUTask        = "hw_gpu_task"
	LabelKernelCode     = "hw_kernel_code"  // an Xid, a severity, a kind of failure
	LabelKernelEvent    = "hw_kernel_event" // the kind of message in the kernel's log
	LabelLight          = "hw_light"        // of a bay: fault or locate
	LabelLimitType      = "hw_limit_type"
	LabelLocation       = "hw_sensor_location" // the place of a sensor within its component
	LabelMemberState    = "hw_member_state"
	LabelQuality        = "hw_quality"
	LabelRAIDLevel      = "hw_logical_disk_raid_level"
	LabelSeverity       = "hw_severity"
	LabelSMARTAttribute = "hw_physical_disk_smart_attribute"
	LabelTask           = "hw_task" // rebuild, patrol_read and so on
	LabelThrottleScope  = "hw_throttle_scope"
	LabelVolumeState    = "hw_logical_disk_state"
)
