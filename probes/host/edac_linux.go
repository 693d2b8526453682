package host

import (
	"context"
	"strings"

	"hwsagent/probes"
)

// edac reads the memory controllers' error counters (the kernel's
// Documentation/driver-api/edac.rst): per controller, per chip-select row, and per
// channel of a row, which is a memory module.
type edac struct {
	dir                                    string
	correctable, uncorrectable             *probes.Family
	rowCorrectable, rowUncorrectable       *probes.Family
	moduleCorrectable, moduleUncorrectable *probes.Family
}

func newEDAC(e *environment) reader {
	return &edac{
		dir:                 e.sys("devices/system/edac/mc"),
		correctable:         counter("node_edac_correctable_errors_total", "Memory errors that were corrected, by controller."),
		uncorrectable:       counter("node_edac_uncorrectable_errors_total", "Memory errors that could not be corrected, by controller."),
		rowCorrectable:      counter("node_edac_csrow_correctable_errors_total", "Memory errors that were corrected, by chip-select row."),
		rowUncorrectable:    counter("node_edac_csrow_uncorrectable_errors_total", "Memory errors that could not be corrected, by chip-select row."),
		moduleCorrectable:   counter("node_edac_channel_correctable_errors_total", "Memory errors that were corrected, by channel."),
		moduleUncorrectable: counter("node_edac_channel_uncorrectable_errors_total", "Memory errors that could not be corrected, by channel."),
	}
}

func (e *edac) read(_ context.Context, r *probes.Round) error {
	names, err := list(e.dir)
	if err != nil {
		return err
	}
	found := false
	for _, name := range names {
		controller, ok := unit(name, "mc")
		if !ok {
			continue
		}
		found = true
		dir := e.dir + "/" + name
		addNumber(r, e.correctable, dir+"/ce_count", "controller", controller)
		addNumber(r, e.uncorrectable, dir+"/ue_count", "controller", controller)
		addNumber(r, e.rowCorrectable, dir+"/ce_noinfo_count", "controller", controller, "csrow", "unknown")
		addNumber(r, e.rowUncorrectable, dir+"/ue_noinfo_count", "controller", controller, "csrow", "unknown")
		rows, err := list(dir)
		if err != nil {
			continue // newer controllers have no rows
		}
		for _, row := range rows {
			if id, ok := unit(row, "csrow"); ok {
				e.readRow(r, dir+"/"+row, controller, id)
			}
		}
	}
	if !found {
		return errAbsent
	}
	return nil
}

func (e *edac) readRow(r *probes.Round, dir, controller, row string) {
	addNumber(r, e.rowCorrectable, dir+"/ce_count", "controller", controller, "csrow", row)
	addNumber(r, e.rowUncorrectable, dir+"/ue_count", "controller", controller, "csrow", row)
	for _, channel := range [...]string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11"} {
		module := dir + "/ch" + channel
		corrected, ok := number(module + "_ce_count")
		if !ok {
			continue // channels may have holes
		}
		labels := []string{"channel", channel, "controller", controller, "csrow", row, "dimm_label", moduleLabel(module + "_dimm_label")}
		r.Add(e.moduleCorrectable, corrected, labels...)
		addNumber(r, e.moduleUncorrectable, module+"_ue_count", labels...)
	}
}

// moduleLabel turns mc#0csrow#1channel#0 into mc0_csrow1_channel0.
func moduleLabel(path string) string {
	label, err := attribute(path)
	if err != nil {
		return "unknown"
	}
	return strings.NewReplacer("#", "", "csrow", "_csrow", "channel", "_channel").Replace(label)
}

// addNumber adds a numeric attribute if it exists.
func addNumber(r *probes.Round, f *probes.Family, path string, labels ...string) {
	if v, ok := number(path); ok {
		r.Add(f, v, labels...)
	}
}
