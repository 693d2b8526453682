package agent

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/relabel"

	"hwsagent/receivers"
	"hwsagent/remotewrite/config"
)

// pushgatewayName is the name of the receiver of pushed metrics, and of the probe that
// appends them.
const pushgatewayName = "pushgateway"

// ReceiversConfig lists the receivers through which other programs send data to the agent. A nil receiver is off.
type ReceiversConfig struct {
	RemoteWrite *ReceiverConfig    `yaml:"remote_write,omitempty"`
	Pushgateway *PushgatewayConfig `yaml:"pushgateway,omitempty"`
	Import      *ReceiverConfig    `yaml:"import,omitempty"` // Prometheus text
	OTLP        *OTLPConfig        `yaml:"otlp,omitempty"`
}

// ListenConfig says where a receiver listens and who may reach it.
type ListenConfig struct {
	Listen        string `yaml:"listen"`                    // host:port
	WebConfigFile string `yaml:"web_config_file,omitempty"` // TLS and users, in exporter-toolkit's format
	// InsecureListen allows an address other than loopback without WebConfigFile.
	InsecureListen bool `yaml:"insecure_listen,omitempty"`
}

// IntakeConfig says how the samples of a receiver are processed.
type IntakeConfig struct {
	MetricRelabelConfigs []*relabel.Config `yaml:"metric_relabel_configs,omitempty"`
	Limits               LimitsConfig      `yaml:"limits,omitempty"`
}

// ReceiverConfig is a receiver with one listener.
type ReceiverConfig struct {
	ListenConfig `yaml:",inline"`
	IntakeConfig `yaml:",inline"`
}

// PushgatewayConfig configures a receiver that keeps pushed metrics and appends them at each interval.
type PushgatewayConfig struct {
	ListenConfig `yaml:",inline"`
	IntakeConfig `yaml:",inline"`
	Interval     model.Duration `yaml:"interval,omitempty"` // default global.scrape_interval
}

// OTLPConfig configures the receiver for OpenTelemetry metrics. The limits apply to each of its listeners.
type OTLPConfig struct {
	HTTP         *ListenConfig `yaml:"http,omitempty"`
	GRPC         *ListenConfig `yaml:"grpc,omitempty"`
	IntakeConfig `yaml:",inline"`

	// As in the section otlp of Prometheus' configuration.
	PromoteResourceAttributes         []string `yaml:"promote_resource_attributes,omitempty"`
	PromoteAllResourceAttributes      bool     `yaml:"promote_all_resource_attributes,omitempty"`
	IgnoreResourceAttributes          []string `yaml:"ignore_resource_attributes,omitempty"`
	TranslationStrategy               string   `yaml:"translation_strategy,omitempty"` // default UnderscoreEscapingWithSuffixes
	KeepIdentifyingResourceAttributes bool     `yaml:"keep_identifying_resource_attributes,omitempty"`
	ConvertHistogramsToNHCB           bool     `yaml:"convert_histograms_to_nhcb,omitempty"`
	PromoteScopeMetadata              bool     `yaml:"promote_scope_metadata,omitempty"`
	// Default true.
	LabelNameUnderscoreSanitization      *bool `yaml:"label_name_underscore_sanitization,omitempty"`
	LabelNamePreserveMultipleUnderscores *bool `yaml:"label_name_preserve_multiple_underscores,omitempty"`
}

// strategies are the values of [OTLPConfig.TranslationStrategy].
func strategies() []string {
	return []string{"UnderscoreEscapingWithSuffixes", "UnderscoreEscapingWithoutSuffixes", "NoUTF8EscapingWithSuffixes", "NoTranslation"}
}

func (c *OTLPConfig) validate(d *document) {
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
	if !canReceiveOTLP {
		d.errorAtKey(at, "this build of the agent cannot receive OTLP", "it was built with -tags minimal; use the usual one, or remove the key")
	}
}

// LimitsConfig is [receivers.Limits]; 0 stands for the default.
type LimitsConfig struct {
	BodyBytes       config.Bytes `yaml:"body_bytes,omitempty"`
	DecodedBytes    config.Bytes `yaml:"decoded_bytes,omitempty"`
	MemoryBytes     config.Bytes `yaml:"memory_bytes,omitempty"`
	Series          int          `yaml:"series,omitempty"`
	Samples         int          `yaml:"samples,omitempty"`
	ActiveSeries    int          `yaml:"active_series,omitempty"`
	Labels          int          `yaml:"labels,omitempty"`
	LabelNameBytes  config.Bytes `yaml:"label_name_bytes,omitempty"`
	LabelValueBytes config.Bytes `yaml:"label_value_bytes,omitempty"`
	Requests        int          `yaml:"requests,omitempty"`
	Connections     int          `yaml:"connections,omitempty"`
}

// limits returns c with the defaults filled in.
func (c LimitsConfig) limits() receivers.Limits {
	l := receivers.DefaultLimits()
	set := func(to *int, n int) {
		if n > 0 {
			*to = n
		}
	}
	size := func(to *int64, n config.Bytes) {
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

// listener is one listener of the receivers, with its place in the file.
type listener struct {
	name, path string // as in logs, and below receivers
	*ListenConfig
}

// listeners returns the configured listeners in display order.
func (c *ReceiversConfig) listeners() []listener {
	var all []listener
	if c.RemoteWrite != nil {
		all = append(all, listener{"remote_write", "remote_write", &c.RemoteWrite.ListenConfig})
	}
	if c.Pushgateway != nil {
		all = append(all, listener{pushgatewayName, pushgatewayName, &c.Pushgateway.ListenConfig})
	}
	if c.Import != nil {
		all = append(all, listener{"import", "import", &c.Import.ListenConfig})
	}
	if c.OTLP != nil && c.OTLP.HTTP != nil {
		all = append(all, listener{"otlp_http", "otlp.http", c.OTLP.HTTP})
	}
	if c.OTLP != nil && c.OTLP.GRPC != nil {
		all = append(all, listener{"otlp_grpc", "otlp.grpc", c.OTLP.GRPC})
	}
	return all
}

// intakes returns the intake settings by their path below receivers.
func (c *ReceiversConfig) intakes() map[string]*IntakeConfig {
	all := map[string]*IntakeConfig{}
	if c.RemoteWrite != nil {
		all["remote_write"] = &c.RemoteWrite.IntakeConfig
	}
	if c.Pushgateway != nil {
		all[pushgatewayName] = &c.Pushgateway.IntakeConfig
	}
	if c.Import != nil {
		all["import"] = &c.Import.IntakeConfig
	}
	if c.OTLP != nil {
		all["otlp"] = &c.OTLP.IntakeConfig
	}
	return all
}

// validate checks rules that the types cannot express. taken holds the addresses of other listeners.
func (c *ReceiversConfig) validate(d *document, taken map[string]string) {
	for _, l := range c.listeners() {
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

func (l listener) validate(d *document, taken map[string]string) {
	at := "receivers." + l.path
	if l.Listen == "" {
		d.errorAt(at, "the receiver has no address to listen on", `write listen: "127.0.0.1:`+l.usualPort()+`"`)
		return
	}
	host, port, err := net.SplitHostPort(l.Listen)
	if err != nil {
		d.errorAt(at+".listen", fmt.Sprintf("%q is not host:port", l.Listen), `as in "127.0.0.1:`+l.usualPort()+`"`)
		return
	}
	if other := taken[l.Listen]; other != "" && port != "0" {
		d.errorAt(at+".listen", fmt.Sprintf("%s is already the address of %s", l.Listen, other), "give each listener a port of its own")
	}
	taken[l.Listen] = at
	switch {
	case receivers.LoopbackHost(host) || l.WebConfigFile != "":
	case l.InsecureListen:
		d.warnAt(at+".insecure_listen", fmt.Sprintf("whoever reaches %s can write any series", l.Listen), "give web_config_file, with TLS and users")
	default:
		d.errorAt(at+".listen", fmt.Sprintf("%q can be reached from other hosts, and there is no web_config_file with TLS and users", l.Listen),
			"listen on 127.0.0.1, give web_config_file, or write insecure_listen: true")
	}
}

// usualPort returns the port that senders of the protocol use by default.
func (l listener) usualPort() string {
	switch l.name {
	case "otlp_http":
		return "4318"
	case "otlp_grpc":
		return "4317"
	case pushgatewayName:
		return "9091"
	case "import":
		return "9466"
	}
	return "9465"
}

func (c *IntakeConfig) validate(d *document, path string) {
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
	if full := l.limits(); full.MemoryBytes < 2*full.DecodedBytes {
		d.errorAt(path+".limits.memory_bytes", fmt.Sprintf("%s leave no room for a request of decoded_bytes (%s)", config.Bytes(full.MemoryBytes), config.Bytes(full.DecodedBytes)),
			"give memory_bytes at least twice as much")
	}
}
