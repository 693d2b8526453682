// Package config holds one entry of remote_write: decoding, defaults, validation with hints, the
// tenant block, and the redaction of a printed entry. It opens no file but
// knows the file names, and makes no connection.
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
	URL                  URL               `yaml:"url"`
	Name                 string            `yaml:"name,omitempty"`
	RemoteTimeout        model.Duration    `yaml:"remote_timeout,omitempty"`
	Headers              redact.Headers    `yaml:"headers,omitempty"`
	WriteRelabelConfigs  []*relabel.Config `yaml:"write_relabel_configs,omitempty"`
	SendExemplars        bool              `yaml:"send_exemplars,omitempty"`
	SendNativeHistograms bool              `yaml:"send_native_histograms,omitempty"`
	RoundRobinDNS        bool              `yaml:"round_robin_dns,omitempty"`
	ProtobufMessage      string            `yaml:"protobuf_message,omitempty"`
	FailedRequestLogging bool              `yaml:"failed_request_logging,omitempty"`

	HTTP     config.HTTPClientConfig `yaml:",inline"`
	Queue    QueueConfig             `yaml:"queue_config,omitempty"`
	Metadata MetadataConfig          `yaml:"metadata_config,omitempty"`
	Target   TargetConfig            `yaml:"hwsagent,omitempty"`

	// At most one of these, and none beside another authentication method.
	SigV4     *SigV4     `yaml:"sigv4,omitempty"`
	AzureAD   *AzureAD   `yaml:"azuread,omitempty"`
	GoogleIAM *GoogleIAM `yaml:"google_iam,omitempty"`

	// Only of a target in a tenant group, see [TenantConfig].
	role   TenantRole
	tenant string

	hide *redact.Secrets // see Hide; may be nil
}

// QueueConfig is the queue_config key.
type QueueConfig struct {
	Capacity          int            `yaml:"capacity,omitempty"` // samples waiting in a shard before the reader stops
	MaxShards         int            `yaml:"max_shards,omitempty"`
	MinShards         int            `yaml:"min_shards,omitempty"`
	MaxSamplesPerSend int            `yaml:"max_samples_per_send,omitempty"`
	BatchSendDeadline model.Duration `yaml:"batch_send_deadline,omitempty"` // the longest that a sample waits for its batch to fill
	MinBackoff        model.Duration `yaml:"min_backoff,omitempty"`
	MaxBackoff        model.Duration `yaml:"max_backoff,omitempty"`
	RetryOnRateLimit  bool           `yaml:"retry_on_http_429"`
	SampleAgeLimit    model.Duration `yaml:"sample_age_limit,omitempty"` // 0: no limit
}

// MetadataConfig is the metadata_config key.
type MetadataConfig struct {
	Send              bool           `yaml:"send"`
	SendInterval      model.Duration `yaml:"send_interval"`
	MaxSamplesPerSend int            `yaml:"max_samples_per_send,omitempty"` // metric families in one request
}

// TargetConfig is the hwsagent key, which Prometheus does not have.
type TargetConfig struct {
	OnRefusal Refusal `yaml:"on_refusal"`
	StartAt   StartAt `yaml:"start_at"`
	// CatchUpRateLimit is the most backlog samples to send per second: with live_first those
	// left behind, with in_order those older than half a minute. 0: no limit.
	CatchUpRateLimit float64 `yaml:"catch_up_rate_limit,omitempty"`

	MaxBacklog  Bytes          `yaml:"max_backlog,omitempty"` // of the log, for this target; 0: only the log's own budget
	CatchUp     CatchUp        `yaml:"catch_up"`
	FutureLimit model.Duration `yaml:"future_limit"`     // samples further ahead of the target's clock are not sent; 0: no limit
	OnFuture    OnFuture       `yaml:"on_future"`        // what to do with these samples
	Compression Compression    `yaml:"compression"`      // of requests with samples
	Tenant      *TenantConfig  `yaml:"tenant,omitempty"` // nil: the entry is one target
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
			Capacity:          10000,
			MaxShards:         50,
			MinShards:         1,
			MaxSamplesPerSend: 2000,
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
			OnRefusal: RefusalHold, StartAt: StartNow, CatchUp: InOrder, Compression: CompressionAuto,
			FutureLimit: model.Duration(10 * time.Minute), OnFuture: FutureWait,
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
