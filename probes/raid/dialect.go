package raid

import (
	"context"
	"path/filepath"
	"strings"

	"hwsagent/probes/hw"
)

// ask runs a program with arguments and returns its output, also if it ended with a nonzero status: the programs use
// statuses for "no such disk", too.
type ask func(ctx context.Context, args ...string) ([]byte, error)

// dialect is how one family of programs is asked, and how its answers are read.
type dialect struct {
	names []string // what the program's file name begins with, in lower case
	paths []string // where the maker's packages install it
	// read returns the controllers. With an error it also returns those, and the parts of one, that it read before.
	read func(ctx context.Context, run ask) ([]controller, error)
}

// controller is a controller with its parts; the first report is the controller's own.
type controller []hw.Report

func dialects() []dialect {
	return []dialect{
		{[]string{"storcli", "perccli"}, []string{
			"/opt/MegaRAID/perccli/perccli64", "/opt/MegaRAID/storcli/storcli64", "/opt/lsi/storcli/storcli64", "/usr/sbin/perccli64", "/usr/sbin/perccli",
			"/usr/sbin/storcli64", "/usr/sbin/storcli", "/usr/local/sbin/storcli64", "/usr/local/sbin/storcli", "/usr/local/bin/storcli64", "/usr/local/bin/storcli"}, readStorcli},
		{[]string{"ssacli", "hpssacli"}, []string{"/usr/sbin/ssacli", "/opt/smartstorageadmin/ssacli/bin/ssacli", "/usr/sbin/hpssacli"}, readSSA},
		{[]string{"arcconf"}, []string{"/usr/Arcconf/arcconf", "/usr/StorMan/arcconf", "/usr/sbin/arcconf", "/usr/local/sbin/arcconf", "/usr/local/bin/arcconf"}, readArcconf},
		{[]string{"sas3ircu", "sas2ircu"}, []string{"/usr/sbin/sas3ircu", "/usr/local/sbin/sas3ircu", "/usr/local/bin/sas3ircu", "/usr/sbin/sas2ircu", "/usr/local/sbin/sas2ircu", "/usr/local/bin/sas2ircu"}, readIRCU},
	}
}

// dialectOf returns the dialect of a program; nil if it is unknown.
func dialectOf(program string) *dialect {
	base := strings.ToLower(filepath.Base(program))
	for _, d := range dialects() {
		for _, name := range d.names {
			if strings.HasPrefix(base, name) && !strings.HasPrefix(base, "storcli2") { // storcli2 has answers of another form
				return &d
			}
		}
	}
	return nil
}

func programNames() (all []string) {
	for _, d := range dialects() {
		all = append(all, d.names...)
	}
	return all
}
