package convert

import (
	"fmt"
	"regexp"
)

// others are programs whose configuration is recognised and refused: by name, what in it shows them, and what to do instead.
var others = []struct {
	name, title, instead string
	sign                 *regexp.Regexp
}{
	{"alloy", "Grafana Alloy", "write the components as scrape_configs, probes and remote_write, which have the same keys",
		regexp.MustCompile(`(?m)^[a-z_]+(\.[a-z_0-9]+)*([ \t]+"[^"\n]*")?[ \t]*\{`)},
	{"telegraf", "Telegraf", "write a probe of type host or snmp for its inputs, and an entry of remote_write for outputs.http",
		regexp.MustCompile(`(?m)^[ \t]*(\[(agent|global_tags)\]|\[\[(inputs|outputs|processors|aggregators)\.[A-Za-z0-9_]+\]\])[ \t]*(#.*)?\r?$`)},
}

// refuse returns an error if a text, or the name of a format, is that of another program.
func refuse(from, file string, text []byte) error {
	for _, o := range others {
		if from == o.name || from == "" && o.sign.Match(text) {
			return fmt.Errorf("convert %s: it is a configuration of %s, which cannot be converted: %s", file, o.title, o.instead)
		}
	}
	return nil
}
