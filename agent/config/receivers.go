package config

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/relabel"

	"go.yaml.in/yaml/v4"

	"hwsagent/internal/loopback"
	"hwsagent/receivers"
	"hwsagent/receivers/catalog"
	remoteconfig "hwsagent/remotewrite/config"
)

// PushgatewayName is the name of the receiver of pushed metrics, and of the probe that
// appends them.
const PushgatewayName = "pushgateway"

// Receivers lists the receivers through which other programs send data to the agent. A nil receiver is off.
type Receivers struct {
	Pushgateway *Pushgateway `yaml:"pushgateway,omitempty"`
	OTLP        *OTLP        `yaml:"otlp,omitempty"`
	// Simple holds the receivers of [catalog.Types], by name.
	Simple map[string]*Receiver `yaml:",inline"`
}

// simpleReceivers are the keys of [Receivers.Simple].
func simpleReceivers() (names []string) {
	for _, t := range catalog.Types() {
		names = append(names, t.Name)
	}
	return names
}

// UnmarshalYAML reads the section; a key that no receiver has is a mistake.
func (c *Receivers) UnmarshalYAML(n *yaml.Node) error {
	var own struct {
		Pushgateway *Pushgateway `yaml:"pushgateway"`
		OTLP        *OTLP        `yaml:"otlp"`
	}
	if n.Kind != yaml.MappingNode {
		return n.Load(&own)
	}
	var failures loadFailures
	rest := *n
	rest.Content = nil
	c.Simple = map[string]*Receiver{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name := n.Content[i].Value
		if !slices.Contains(simpleReceivers(), name) || c.Simple[name] != nil { // a key that appears twice is a mistake
			rest.Content = append(rest.Content, n.Content[i:i+2]...)
			continue
		}
		var r *Receiver
		failures.add(n.Content[i+1].Load(&r, yaml.WithKnownFields()))
		if r != nil {
			c.Simple[name] = r
		}
	}
	failures.add(rest.Load(&own, yaml.WithKnownFields()))
	c.Pushgateway, c.OTLP = own.Pushgateway, own.OTLP
	return failures.err()
}

// Listener says where a receiver listens and who may reach it.
type Listener struct {
	Listen        string `yaml:"listen"`                    // host:port
	WebConfigFile string `yaml:"web_config_file,omitempty"` // TLS and users, in exporter-toolkit's format; read again for each connection
	// InsecureListen allows an address that other hosts can reach without web_config_file.
	InsecureListen bool `yaml:"insecure_listen,omitempty"`
}

// Intake says how the samples of a receiver are processed.
type Intake struct {
	MetricRelabelConfigs []*relabel.Config `yaml:"metric_relabel_configs,omitempty"`
	Limits               Limits            `yaml:"limits,omitempty"` // 0 stands for the default of a limit
}

// Receiver is a receiver with one listener.
type Receiver struct {
	Listener `yaml:",inline"`
	Intake   `yaml:",inline"`
}

// Pushgateway configures a receiver that keeps pushed metrics and appends them at each interval.
type Pushgateway struct {
	Listener `yaml:",inline"`
	Intake   `yaml:",inline"`
	Interval model.Duration `yaml:"interval,omitempty"` // how often the groups are appended; default global.scrape_interval
}

// OTLP configures the receiver for OpenTelemetry metrics. The limits apply to each of its listeners.
type OTLP struct {
	HTTP   *Listener `yaml:"http,omitempty"`
	GRPC   *Listener `yaml:"grpc,omitempty"`
	Intake `yaml:",inline"`

	// As in the section otlp of Prometheus' configuration.

	PromoteResourceAttributes    []string `yaml:"promote_resource_attributes,omitempty"`     // resource attributes that become labels of every series
	PromoteAllResourceAttributes bool     `yaml:"promote_all_resource_attributes,omitempty"` // all resource attributes become labels
	IgnoreResourceAttributes     []string `yaml:"ignore_resource_attributes,omitempty"`      // all but these, with promote_all_resource_attributes
	// TranslationStrategy is how names are made: also `UnderscoreEscapingWithoutSuffixes`, `NoUTF8EscapingWithSuffixes`,
	// `NoTranslation`; default UnderscoreEscapingWithSuffixes
	TranslationStrategy                  string `yaml:"translation_strategy,omitempty"`
	KeepIdentifyingResourceAttributes    bool   `yaml:"keep_identifying_resource_attributes,omitempty"`     // service.* also in target_info
	ConvertHistogramsToNHCB              bool   `yaml:"convert_histograms_to_nhcb,omitempty"`               // classic histograms become native ones with custom buckets
	PromoteScopeMetadata                 bool   `yaml:"promote_scope_metadata,omitempty"`                   // name, version and attributes of the scope become labels
	LabelNameUnderscoreSanitization      *bool  `yaml:"label_name_underscore_sanitization,omitempty"`       // labels that begin with _ get the prefix key; default true
	LabelNamePreserveMultipleUnderscores *bool  `yaml:"label_name_preserve_multiple_underscores,omitempty"` // several _ in a label's name stay; default true
}

// strategies are the values of [OTLP.TranslationStrategy].
func strategies() []string {
	return []string{"UnderscoreEscapingWithSuffixes", "UnderscoreEscapingWithoutSuffixes", "NoUTF8EscapingWithSuffixes", "NoTranslation"}
}

func (c *OTLP) validate(d *document) {
	const at = "receivers.otlp"
	if c.HTTP == nil && c.GRPC == nil {
		d.errorAt(at, "the receiver has no address to listen on", `write http: {listen: "127.0.0.1:4318"}, or grpc: {listen: "127.0.0.1:4317"}`)
	}
	if c.TranslationStrategy != "" && !slices.Contains(strategies(), c.TranslationStrategy) {
		hint := "one of " + strings.Join(strategies(), ", ")
		if n := nearest(c.TranslationStrategy, strategies()); n != "" {
			hint = fmt.Sprintf("did you mean %q? %s", n, hint)
		}
		d.errorAt(at+".translation_strategy", fmt.Sprintf("unknown strategy %q", c.TranslationStrategy), hint)
	}
	switch {
	case c.PromoteAllResourceAttributes && len(c.PromoteResourceAttributes) > 0:
		d.errorAt(at+".promote_resource_attributes", "cannot be combined with promote_all_resource_attributes", "remove one of them")
	case !c.PromoteAllResourceAttributes && len(c.IgnoreResourceAttributes) > 0:
		d.errorAt(at+".ignore_resource_attributes", "has an effect only with promote_all_resource_attributes: true", "")
	}
}

// Limits is [receivers.Limits]; 0 stands for the default.
type Limits struct {
	BodyBytes       remoteconfig.Bytes `yaml:"body_bytes,omitempty"`        // of a request as received; default 8MiB
	DecodedBytes    remoteconfig.Bytes `yaml:"decoded_bytes,omitempty"`     // of a request, decompressed; default 32MiB
	MemoryBytes     remoteconfig.Bytes `yaml:"memory_bytes,omitempty"`      // of all requests in progress together, at least twice decoded_bytes; default 128MiB
	Series          int                `yaml:"series,omitempty"`            // of a request; default 50000
	Samples         int                `yaml:"samples,omitempty"`           // of a request; default 200000
	ActiveSeries    int                `yaml:"active_series,omitempty"`     // different series within one to two hours, after relabelling; one counts once more for each 2 KiB of labels; default 200000
	Labels          int                `yaml:"labels,omitempty"`            // of a series; default 64
	LabelNameBytes  remoteconfig.Bytes `yaml:"label_name_bytes,omitempty"`  // of a label's name; default 512
	LabelValueBytes remoteconfig.Bytes `yaml:"label_value_bytes,omitempty"` // of a label's value; default 4096
	Requests        int                `yaml:"requests,omitempty"`          // decoded and stored at the same time; further ones wait up to 5 s; default 4
	Connections     int                `yaml:"connections,omitempty"`       // further ones are closed at once; default 4096
}

// WithDefaults returns c with the defaults filled in.
func (c Limits) WithDefaults() receivers.Limits {
	l := receivers.DefaultLimits()
	set := func(to *int, n int) {
		if n > 0 {
			*to = n
		}
	}
	size := func(to *int64, n remoteconfig.Bytes) {
		if n > 0 {
			*to = int64(n)
		}
	}
	size(&l.BodyBytes, c.BodyBytes)
	size(&l.DecodedBytes, c.DecodedBytes)
	// One request of the maximum size must fit.
	l.MemoryBytes = max(l.MemoryBytes, 4*l.DecodedBytes)
	size(&l.MemoryBytes, c.MemoryBytes)
	set(&l.Series, c.Series)
	set(&l.Samples, c.Samples)
	set(&l.ActiveSeries, c.ActiveSeries)
	set(&l.Labels, c.Labels)
	set(&l.LabelNameBytes, int(c.LabelNameBytes))
	set(&l.LabelValueBytes, int(c.LabelValueBytes))
	set(&l.Requests, c.Requests)
	set(&l.Connections, c.Connections)
	return l
}

// NamedListener is one listener of the receivers, with its place in the file.
type NamedListener struct {
	Name, Path string // as in logs, and below receivers
	usualPort  string // that senders of the protocol use by default
	*Listener
}

// Listeners returns the configured listeners in display order.
func (c *Receivers) Listeners() []NamedListener {
	var all []NamedListener
	for _, t := range catalog.Types() {
		if r := c.Simple[t.Name]; r != nil {
			all = append(all, NamedListener{t.Name, t.Name, t.Port, &r.Listener})
		}
	}
	if c.Pushgateway != nil {
		all = append(all, NamedListener{PushgatewayName, PushgatewayName, "9091", &c.Pushgateway.Listener})
	}
	if c.OTLP != nil && c.OTLP.HTTP != nil {
		all = append(all, NamedListener{"otlp_http", "otlp.http", "4318", c.OTLP.HTTP})
	}
	if c.OTLP != nil && c.OTLP.GRPC != nil {
		all = append(all, NamedListener{"otlp_grpc", "otlp.grpc", "4317", c.OTLP.GRPC})
	}
	return all
}

// intakes returns the intake settings by their path below receivers.
func (c *Receivers) intakes() map[string]*Intake {
	all := map[string]*Intake{}
	for name, r := range c.Simple {
		all[name] = &r.Intake
	}
	if c.Pushgateway != nil {
		all[PushgatewayName] = &c.Pushgateway.Intake
	}
	if c.OTLP != nil {
		all["otlp"] = &c.OTLP.Intake
	}
	return all
}

// validate checks rules that the types cannot express. taken holds the addresses of other listeners.
func (c *Receivers) validate(d *document, taken map[string]string) {
	for _, l := range c.Listeners() {
		l.validate(d, taken)
	}
	if c.OTLP != nil {
		c.OTLP.validate(d)
	}
	if p := c.Pushgateway; p != nil && p.Interval < minInterval {
		d.errorAt("receivers.pushgateway.interval", fmt.Sprintf("%s is shorter than the least interval, %s", p.Interval, minInterval), "")
	}
	for path, in := range c.intakes() {
		in.validate(d, "receivers."+path)
	}
	for _, key := range d.keysIn("receivers") {
		if n := d.value("receivers." + key); n != nil && n.Value == "" && len(n.Content) == 0 && n.ShortTag() == "!!null" {
			d.errorAtKey("receivers."+key, "the receiver has no address to listen on", "write "+key+": {listen: \"127.0.0.1:PORT\"}, or remove the key")
		}
	}
}

func (l NamedListener) validate(d *document, taken map[string]string) {
	at := "receivers." + l.Path
	if l.Listen == "" {
		d.errorAt(at, "the receiver has no address to listen on", `write listen: "127.0.0.1:`+l.usualPort+`"`)
		return
	}
	host, port, err := net.SplitHostPort(l.Listen)
	if err != nil {
		d.errorAt(at+".listen", fmt.Sprintf("%q is not host:port", l.Listen), `as in "127.0.0.1:`+l.usualPort+`"`)
		return
	}
	if other := taken[l.Listen]; other != "" && port != "0" {
		d.errorAt(at+".listen", fmt.Sprintf("%s is already the address of %s", l.Listen, other), "give each listener a port of its own")
	}
	taken[l.Listen] = at
	switch {
	case loopback.Host(host) || l.WebConfigFile != "":
	case l.InsecureListen:
		d.warnAt(at+".insecure_listen", fmt.Sprintf("whoever reaches %s can write any series", l.Listen), "give web_config_file, with TLS and users")
	default:
		d.errorAt(at+".listen", fmt.Sprintf("%q can be reached from other hosts, and there is no web_config_file with TLS and users", l.Listen),
			"listen on 127.0.0.1, give web_config_file, or write insecure_listen: true")
	}
}

func (c *Intake) validate(d *document, path string) {
	for i, r := range c.MetricRelabelConfigs {
		at := fmt.Sprintf("%s.metric_relabel_configs[%d]", path, i)
		if r == nil {
			d.errorAt(at, "the rule is empty", "")
		} else if err := r.Validate(model.UTF8Validation); err != nil {
			d.errorAt(at, err.Error(), "")
		}
	}
	l := c.Limits
	for key, n := range map[string]int{
		"series": l.Series, "samples": l.Samples, "active_series": l.ActiveSeries, "labels": l.Labels, "requests": l.Requests, "connections": l.Connections,
	} {
		if n < 0 {
			d.errorAt(path+".limits."+key, "must not be negative", "0 stands for the default")
		}
	}
	if full := l.WithDefaults(); full.MemoryBytes < 2*full.DecodedBytes {
		d.errorAt(path+".limits.memory_bytes", fmt.Sprintf("%s leave no room for a request of decoded_bytes (%s)", remoteconfig.Bytes(full.MemoryBytes), remoteconfig.Bytes(full.DecodedBytes)),
			"give memory_bytes at least twice as much")
	}
}
