package smart

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// capture holds the used parts of smartctl --json for one disk. Values that a disk lacks are absent there,
// and nil here.
type capture struct {
	Smartctl struct {
		ExitStatus int `json:"exit_status"`
		Messages   []struct {
			String string `json:"string"`
		} `json:"messages"`
	} `json:"smartctl"`
	Device struct {
		Name     string `json:"name"`
		InfoName string `json:"info_name"`
		Type     string `json:"type"`
		Protocol string `json:"protocol"`
	} `json:"device"`
	ModelFamily string `json:"model_family"`
	ModelName   string `json:"model_name"`
	SCSIModel   string `json:"scsi_model_name"` // in place of model_name, until smartctl 7.4
	Vendor      string `json:"scsi_vendor"`
	Product     string `json:"scsi_product"`
	Standard    string `json:"scsi_version"`
	Addition    string `json:"ata_additional_product_id"`
	Serial      string `json:"serial_number"`
	Firmware    string `json:"firmware_version"`
	Revision    string `json:"scsi_revision"`
	FormFactor  named  `json:"form_factor"`
	ATAVersion  named  `json:"ata_version"`
	SATAVersion named  `json:"sata_version"`
	WWN         *struct {
		NAA uint64 `json:"naa"`
		OUI uint64 `json:"oui"`
		ID  uint64 `json:"id"`
	} `json:"wwn"`
	LogicalUnit string `json:"logical_unit_id"`
	Capacity    *struct {
		Blocks *float64 `json:"blocks"`
		Bytes  *float64 `json:"bytes"`
	} `json:"user_capacity"`
	LogicalBlock   *float64 `json:"logical_block_size"`
	PhysicalBlock  *float64 `json:"physical_block_size"`
	Rotation       *float64 `json:"rotation_rate"`
	InterfaceSpeed map[string]struct {
		UnitsPerSecond float64 `json:"units_per_second"`
		BitsPerUnit    float64 `json:"bits_per_unit"`
	} `json:"interface_speed"`
	Status      *selfStatus    `json:"smart_status"`
	Temperature map[string]any `json:"temperature"`
	PowerOn     *powerOn       `json:"power_on_time"`
	PowerCycles *float64       `json:"power_cycle_count"`
	Attributes  struct {
		Table []attribute `json:"table"`
	} `json:"ata_smart_attributes"`
	SCT struct {
		State *float64 `json:"device_state"`
	} `json:"ata_sct_status"`
	ErrorLog    map[string]logCount `json:"ata_smart_error_log"`
	SelfTestLog map[string]logCount `json:"ata_smart_self_test_log"`
	NVMe        *nvmeHealth         `json:"nvme_smart_health_information_log"`
	NVMeSize    *float64            `json:"nvme_total_capacity"`
	Endurance   struct {            // since smartctl 7.5, of all protocols
		Percent *float64 `json:"current_percent"`
	} `json:"endurance_used"`
	SCSIUsed   *float64 `json:"scsi_percentage_used_endurance_indicator"`
	Defects    *float64 `json:"scsi_grown_defect_list"`
	SCSIErrors map[string]struct {
		Fast        *float64    `json:"errors_corrected_by_eccfast"`
		Delayed     *float64    `json:"errors_corrected_by_eccdelayed"`
		Corrected   *float64    `json:"errors_corrected_by_rereads_rewrites"`
		Uncorrected *float64    `json:"total_uncorrected_errors"`
		Gigabytes   json.Number `json:"gigabytes_processed"` // of 10⁹ bytes; "" if absent
	} `json:"scsi_error_counter_log"`
	SCSIStarts struct {
		Sum *float64 `json:"accumulated_start_stop_cycles"`
	} `json:"scsi_start_stop_cycle_counter"`
}

// selfStatus is the disk's overall self-assessment.
type selfStatus struct {
	Passed *bool `json:"passed"`
}

type powerOn struct {
	Hours   float64 `json:"hours"`
	Minutes float64 `json:"minutes"`
}

type named struct {
	Name   string `json:"name"`
	String string `json:"string"`
}

type logCount struct {
	Count  *float64 `json:"count"`
	Errors *float64 `json:"error_count_total"`
}

// attribute is an ATA SMART attribute.
type attribute struct {
	ID         int     `json:"id"`
	Name       string  `json:"name"`
	Value      float64 `json:"value"`
	Worst      float64 `json:"worst"`
	Thresh     float64 `json:"thresh"`
	WhenFailed string  `json:"when_failed"` // now, past or ""
	Flags      struct {
		String        string `json:"string"`
		Prefailure    bool   `json:"prefailure"`
		UpdatedOnline bool   `json:"updated_online"`
		Performance   bool   `json:"performance"`
		ErrorRate     bool   `json:"error_rate"`
		EventCount    bool   `json:"event_count"`
		AutoKeep      bool   `json:"auto_keep"`
	} `json:"flags"`
	Raw struct {
		Value float64 `json:"value"`
	} `json:"raw"`
}

// nvmeHealth is the log SMART / Health Information of NVM Express, base specification 2.0, 5.16.1.3.
type nvmeHealth struct {
	Warning        *float64 `json:"critical_warning"`
	Spare          *float64 `json:"available_spare"`
	SpareThreshold *float64 `json:"available_spare_threshold"`
	Used           *float64 `json:"percentage_used"`
	UnitsRead      *float64 `json:"data_units_read"`
	UnitsWritten   *float64 `json:"data_units_written"`
	MediaErrors    *float64 `json:"media_errors"`
	ErrorEntries   *float64 `json:"num_err_log_entries"`
}

// Bits of smartctl's exit status (smartctl(8), EXIT STATUS).
const (
	bitCommandLine = 1 << 0
	bitOpen        = 1 << 1 // or, with -n, the disk is asleep
	bitFailing     = 1 << 3 // the disk predicts its own failure
	bitPrefail     = 1 << 4 // a prefailure attribute is at or below its threshold
)

// parseCapture parses smartctl's JSON. A value of an unexpected type is skipped; the rest is kept.
func parseCapture(b []byte) (*capture, error) {
	c := new(capture)
	if err := lenient(json.Unmarshal(b, c)); err != nil {
		return nil, fmt.Errorf("read the JSON of smartctl: %w", err)
	}
	if c.ModelName == "" {
		c.ModelName = c.SCSIModel
	}
	return c, nil
}

// scannedBlindly is the type that smartctl --scan reports on Linux for every disk that the kernel drives as a SCSI disk. The
// scan does not open disks, so the type is a guess: a SATA disk behind libata or a SAS controller gets it too, and read as
// this type it has neither model nor attributes (smartctl(8), --scan and -d auto).
const scannedBlindly = "scsi"

// parseScan parses the JSON of smartctl --scan. It skips entries that are not devices. It drops a guessed type, so that smartctl
// detects the type when it reads the disk.
func parseScan(b []byte) ([]Device, error) {
	var scan struct {
		Devices []struct {
			Name string `json:"name"`
			Type string `json:"type"`
		} `json:"devices"`
	}
	if err := lenient(json.Unmarshal(b, &scan)); err != nil {
		return nil, fmt.Errorf("read the JSON of smartctl --scan: %w", err)
	}
	var found []Device
	for _, d := range scan.Devices {
		if d.Type == scannedBlindly {
			d.Type = ""
		}
		if one := (Device{Device: d.Name, Type: d.Type}); one.check() == nil {
			found = append(found, one)
		}
	}
	return found, nil
}

// lenient ignores errors about values of a wrong type: encoding/json reads the rest.
func lenient(err error) error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) && wrong.Field != "" {
		return nil
	}
	return err
}

// said returns smartctl's messages about a failure, in one line.
func (c *capture) said() string {
	var all []string
	for _, m := range c.Smartctl.Messages {
		all = append(all, strings.Join(strings.Fields(m.String), " "))
	}
	text := strings.Join(all, "; ")
	return strings.ToValidUTF8(text[:min(len(text), 300)], "")
}

// asleep reports whether smartctl skipped the disk because it is asleep.
func (c *capture) asleep() bool {
	said := strings.ToUpper(c.said())
	return c.Smartctl.ExitStatus&bitOpen != 0 && (strings.Contains(said, "STANDBY") || strings.Contains(said, "SLEEP"))
}

// volumeHint matches smartctl's refusal of a disk that is a volume of a RAID controller: it names the type that reads the members.
var volumeHint = regexp.MustCompile(`please try adding '-d ([0-9a-z]+),`)

// controller returns the type of the RAID controller whose volume smartctl refuses to read, such as megaraid; "" if the disk is not such
// a volume.
func (c *capture) controller() string {
	if m := volumeHint.FindStringSubmatch(c.said()); m != nil {
		return m[1]
	}
	return ""
}
