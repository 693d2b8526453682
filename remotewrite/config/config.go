// Package config defines one entry of remote_write. It decodes an entry, adds defaults, reports mistakes with hints, and
// hides secrets when an entry is printed. It lists the files that an entry names, but opens none, and makes no connection.
package config

import (
	"maps"
	"math/bits"
	"slices"
	"time"

	"github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/relabel"

	"hwsagent/internal/redact"
)

// Config is one entry of remote_write with the keys and defaults
// of Prometheus 3; differences are listed at [DefaultConfig]. Additional keys
// are under the one key hwsagent. After decoding, call [Config.Validate].
type Config struct {
	URL                  URL               `yaml:"url"`                              // http or https; a user and password in it become basic auth
	Name                 string            `yaml:"name,omitempty"`                   // in logs, metrics and commands; it identifies the queue on disk; default host and path of the URL, with a suffix if unnamed entries share them
	RemoteTimeout        model.Duration    `yaml:"remote_timeout,omitempty"`         // of a request
	Headers              redact.Headers    `yaml:"headers,omitempty"`                // added to each request
	WriteRelabelConfigs  []*relabel.Config `yaml:"write_relabel_configs,omitempty"`  // rules, as in Prometheus, applied when samples are sent
	SendExemplars        bool              `yaml:"send_exemplars,omitempty"`         // send exemplars
	SendNativeHistograms bool              `yaml:"send_native_histograms,omitempty"` // send native histograms by 1.0; 2.0 always sends them
	RoundRobinDNS        bool              `yaml:"round_robin_dns,omitempty"`        // use the addresses of the name in turn
	ProtobufMessage      string            `yaml:"protobuf_message,omitempty"`       // the version: `prometheus.WriteRequest` (1.0), `io.prometheus.write.v2.Request` (2.0), or `auto`: 2.0, or 1.0 if the receiver does not accept 2.0
	FailedRequestLogging bool              `yaml:"failed_request_logging,omitempty"` // no effect: refused samples are always logged, and kept as dead letters

	HTTP     config.HTTPClientConfig `yaml:",inline"`
	Queue    QueueConfig             `yaml:"queue_config,omitempty"`
	Metadata MetadataConfig          `yaml:"metadata_config,omitempty"`
	Target   TargetConfig            `yaml:"hwsagent,omitempty"`

	// At most one of these, and none beside another authentication method.

	SigV4     *SigV4     `yaml:"sigv4,omitempty"`      // requests signed for Amazon, as in Prometheus
	AzureAD   *AzureAD   `yaml:"azuread,omitempty"`    // tokens of Microsoft Entra ID, as in Prometheus
	GoogleIAM *GoogleIAM `yaml:"google_iam,omitempty"` // tokens of Google's clouds, as in Prometheus

	// Only of a target in a tenant group, see [TenantConfig].
	role   TenantRole
	tenant string

	hide *redact.Secrets // see Hide; may be nil
}

// QueueConfig is the queue_config key.
type QueueConfig struct {
	Capacity          int            `yaml:"capacity,omitempty"`             // samples in memory for each request in flight; the rest stays in the log
	MaxShards         int            `yaml:"max_shards,omitempty"`           // most requests in flight: a power of two, at most 16
	MinShards         int            `yaml:"min_shards,omitempty"`           // more are used only while the target is behind, and if they help
	MaxSamplesPerSend int            `yaml:"max_samples_per_send,omitempty"` // of a request; lowered for a while after a 413
	BatchSendDeadline model.Duration `yaml:"batch_send_deadline,omitempty"`  // the longest that a sample waits for its batch to fill
	MinBackoff        model.Duration `yaml:"min_backoff,omitempty"`          // the first pause before a retry; pauses are jittered
	MaxBackoff        model.Duration `yaml:"max_backoff,omitempty"`          // the longest pause; half of it in the first five minutes without any answer
	RetryOnRateLimit  bool           `yaml:"retry_on_http_429"`              // false drops a batch that is answered with 429
	SampleAgeLimit    model.Duration `yaml:"sample_age_limit,omitempty"`     // samples older than this, by the receiver's clock and by this host's, are dropped and counted as too_old; 0: no limit
}

// MetadataConfig is the metadata_config key.
type MetadataConfig struct {
	Send              bool           `yaml:"send"`                           // send metadata by 1.0, while the target accepts data
	SendInterval      model.Duration `yaml:"send_interval"`                  // how often metadata is sent
	MaxSamplesPerSend int            `yaml:"max_samples_per_send,omitempty"` // metric families in a request
}

// TargetConfig is the hwsagent key, which Prometheus does not have.
type TargetConfig struct {
	OnRefusal Refusal `yaml:"on_refusal"` // hold: a 4xx drops only samples that are proven bad; `drop`: a 4xx is final
	StartAt   StartAt `yaml:"start_at"`   // where a new target begins: `now`, or `oldest`, with everything in the log
	// CatchUpRateLimit is the most samples of a backlog to send per second: with live_first those beside the fresh ones,
	// with in_order those older than 30 s; then it must be well above the host's own rate. 0: no limit.
	CatchUpRateLimit float64 `yaml:"catch_up_rate_limit,omitempty"`

	MaxBacklog  Bytes          `yaml:"max_backlog,omitempty"` // how much of the log this target may keep; beyond it the oldest samples are dropped; 0: only wal.max_bytes
	CatchUp     CatchUp        `yaml:"catch_up"`              // after an outage: `in_order`, or `live_first`, fresh samples at once and the backlog beside them
	FutureLimit model.Duration `yaml:"future_limit"`          // samples further ahead of both this host's clock and the receiver's are dropped; 0: no limit
	Compression Compression    `yaml:"compression"`           // of samples: `snappy`, or `zstd` for VictoriaMetrics, with a warning when another receiver answers
	Tenant      *TenantConfig  `yaml:"tenant,omitempty"`      // one entry for several tenants of a receiver
}

// The values of protobuf_message: the messages of the two protocol versions.
const (
	MessageV1 = "prometheus.WriteRequest"
	MessageV2 = "io.prometheus.write.v2.Request"

	// MessageAuto is an addition: 2.0, or 1.0 if the receiver does not accept 2.0.
	MessageAuto = "auto"
)

// AsksForV2 reports whether the target gets remote write 2.0 if it accepts it.
func (c *Config) AsksForV2() bool {
	return c.ProtobufMessage != MessageV1 && c.ProtobufMessage != ""
}

// DefaultConfig is an entry before decoding. It differs from Prometheus' defaults in
// three points: 429 is retried, since the samples wait on disk and dropping them makes no
// sense; redirects are not followed, since they leak bearer tokens and bodies;
// and there is the hwsagent block.
func DefaultConfig() Config {
	return Config{
		RemoteTimeout:   model.Duration(30 * time.Second),
		ProtobufMessage: MessageV1,
		Queue: QueueConfig{
			Capacity:          20000,
			MaxShards:         50,
			MinShards:         1,
			MaxSamplesPerSend: 10000,
			BatchSendDeadline: model.Duration(5 * time.Second),
			MinBackoff:        model.Duration(30 * time.Millisecond),
			MaxBackoff:        model.Duration(5 * time.Second),
			RetryOnRateLimit:  true,
		},
		Metadata: MetadataConfig{
			Send:              true,
			SendInterval:      model.Duration(time.Minute),
			MaxSamplesPerSend: 2000,
		},
		Target: TargetConfig{
			OnRefusal: RefusalHold, StartAt: StartNow, CatchUp: InOrder, Compression: CompressionSnappy,
			FutureLimit: model.Duration(10 * time.Minute),
		},
	}
}

// UnmarshalYAML decodes an entry on top of the defaults.
func (c *Config) UnmarshalYAML(unmarshal func(any) error) error {
	*c = DefaultConfig()
	type plain Config
	return unmarshal((*plain)(c))
}

// TargetName returns the target's name: the key name, or else host and path of the URL.
func (c *Config) TargetName() string {
	if c.Name != "" {
		return c.Name
	}
	return c.URL.Place()
}

// Hide names parts of the paths of the entry's addresses that must never be shown: a variable or
// a file supplied them, so they may be tokens. Call it before the entry is used.
func (c *Config) Hide(parts ...string) {
	c.hide = redact.New(parts...)
	c.URL.hide = c.hide
}

// SetDirectory makes relative file names relative to dir, the directory of the configuration
// file.
func (c *Config) SetDirectory(dir string) {
	if t := c.Target.Tenant; t != nil {
		t.CredentialsDir = config.JoinDir(dir, t.CredentialsDir)
	}
	for _, name := range c.files() {
		*name = config.JoinDir(dir, *name)
	}
}

// MaxShards is the most shards that a queue uses, whatever max_shards allows: a host
// that needs more has another problem.
const MaxShards = 16

// ShardsInUse returns how many shards a queue uses if min_shards or max_shards is n: a
// power of two, so that all series of a shard come from one shard when their number grows.
func ShardsInUse(n int) int { return 1 << (bits.Len(uint(min(n, MaxShards))) - 1) }

// NameValidation applies to the names in relabelling rules. They may be any UTF-8 there, as in
// Prometheus 3; package wire makes them legal where the protocol requires it.
const NameValidation = model.UTF8Validation

// CredentialFiles lists the files that the entry names: tokens, passwords, header
// values, certificates, keys.
func (c *Config) CredentialFiles() []string {
	names := []string{}
	for _, name := range c.files() {
		if *name != "" {
			names = append(names, *name)
		}
	}
	return names
}

// files returns pointers to the names of the entry's credential files, which may be "". Files named by the clouds'
// environment variables are not among them.
func (c *Config) files() []*string {
	h := &c.HTTP
	names := []*string{&h.TLSConfig.CAFile, &h.TLSConfig.CertFile, &h.TLSConfig.KeyFile, &h.BearerTokenFile}
	if o := h.OAuth2; o != nil {
		names = append(names, &o.ClientSecretFile, &o.ClientCertificateKeyFile, &o.TLSConfig.CAFile, &o.TLSConfig.CertFile, &o.TLSConfig.KeyFile)
	}
	if a := h.Authorization; a != nil {
		names = append(names, &a.CredentialsFile)
	}
	if b := h.BasicAuth; b != nil {
		names = append(names, &b.UsernameFile, &b.PasswordFile)
	}
	if h.HTTPHeaders != nil {
		for _, name := range slices.Sorted(maps.Keys(h.HTTPHeaders.Headers)) {
			files := h.HTTPHeaders.Headers[name].Files
			for i := range files {
				names = append(names, &files[i])
			}
		}
	}
	if a := c.AzureAD; a != nil {
		if w := a.WorkloadIdentity; w != nil {
			names = append(names, &w.TokenFilePath)
		}
		if p := a.Certificate; p != nil {
			names = append(names, &p.CertificatePath, &p.CertificateKeyPath)
		}
	}
	if g := c.GoogleIAM; g != nil {
		names = append(names, &g.CredentialsFile)
	}
	return names
}

// CarriesHistogram reports whether 1.0 can carry the native histogram h, or fh if h is nil.
// Custom buckets are not part of 1.0; send_native_histograms applies to 1.0 only, as in
// Prometheus.
func (c *Config) CarriesHistogram(h *histogram.Histogram, fh *histogram.FloatHistogram) bool {
	if h != nil {
		return c.SendNativeHistograms && !h.UsesCustomBuckets()
	}
	return c.SendNativeHistograms && !fh.UsesCustomBuckets()
}

// Role returns which target of an entry with tenants the configuration belongs to.
func (c *Config) Role() TenantRole { return c.role }

// Hidden returns the secrets set by [Config.Hide]; it may be nil.
func (c *Config) Hidden() *redact.Secrets { return c.hide }
