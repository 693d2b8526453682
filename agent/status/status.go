package status

import "time"

// Status is a snapshot of the whole agent. The page, GET /api/v1/status and `hwsagent status` all render this one
// value. Keys are stable: new ones may be added, but existing ones are not renamed or removed under one Schema.
type Status struct {
	Schema  int       `json:"schema"` // 1
	Version string    `json:"version"`
	Host    string    `json:"host,omitempty"` // the name of the host that the agent runs on
	Running bool      `json:"running"`        // false: read from the storage directory of a stopped agent
	Now     time.Time `json:"now"`
	Started time.Time `json:"started,omitzero"`

	Clock      ClockStatus       `json:"clock"`
	Config     ConfigStatus      `json:"config"`
	WAL        WALStatus         `json:"wal"`
	Targets    []TargetStatus    `json:"targets"`
	Probes     []ProbeStatus     `json:"probes"`
	Pull       *PullStatus       `json:"pull,omitempty"`       // nil: off
	Inputs     []InputStatus     `json:"inputs,omitempty"`     // the sources of series: probes, scrapes, receivers
	Duplicates []DuplicateStatus `json:"duplicates,omitempty"` // series that come from two inputs
	Scrape     []ScrapeStatus    `json:"scrape,omitempty"`

	Receivers []ReceiverStatus `json:"receivers,omitempty"` // listeners for data from other programs
	Losses    []LossStatus     `json:"losses,omitempty"`    // of the last 24 hours
	Problems  []Problem        `json:"problems"`            // worst first
	Findings  []Finding        `json:"findings,omitempty"`  // the problems, with equal ones merged
	Verdict   *Verdict         `json:"verdict,omitempty"`   // derived from all other keys, see [Judge]
}

// ConfigStatus describes the configuration in force.
type ConfigStatus struct {
	File        string    `json:"file"`
	LoadedAt    time.Time `json:"loaded_at,omitzero"`
	ReloadError string    `json:"reload_error,omitempty"` // of the last reload, until one succeeds
	ReloadedAt  time.Time `json:"reload_attempted_at,omitzero"`

	ReloadMistakes int `json:"reload_mistakes,omitempty"` // in the configuration, if they are why the reload failed

	// Underway describes a reload or command that takes too long, and the part that it waits for.
	Underway string `json:"underway,omitempty"`
}

// ClockStatus describes changes of this host's clock since the agent started. Times are by the clock as it is set now.
type ClockStatus struct {
	Steps              uint64    `json:"steps"` // how often it was set
	LastStepAt         time.Time `json:"last_step_at,omitzero"`
	LastStepSeconds    float64   `json:"last_step_seconds,omitempty"` // positive: forward, negative: back
	Suspends           uint64    `json:"suspends"`                    // of the host
	LastSuspendAt      time.Time `json:"last_suspend_at,omitzero"`    // when it ended
	LastSuspendSeconds float64   `json:"last_suspend_seconds,omitempty"`
}

// WALStatus describes the log.
type WALStatus struct {
	Dir          string  `json:"dir"`
	Sync         string  `json:"sync"`
	Segments     int     `json:"segments"`
	FirstSegment int     `json:"first_segment"`
	LastSegment  int     `json:"last_segment"`
	Bytes        int64   `json:"bytes"`
	MaxBytes     int64   `json:"max_bytes"`
	FreeBytes    int64   `json:"free_bytes"` // of the file system
	MinFreeBytes int64   `json:"min_free_bytes,omitempty"`
	OnFull       string  `json:"on_full,omitempty"` // drop_oldest or reject
	BytesPerSec  float64 `json:"bytes_per_second"`  // appended to the log, in the last five minutes; 0 in the first one

	LowSince time.Time `json:"low_since,omitzero"` // since when less than MinFreeBytes is free

	// LastsSeconds is how long all incoming samples can be kept if all targets stop accepting, at the present rate; 0:
	// unknown, or no room is left.
	LastsSeconds    float64 `json:"lasts_seconds,omitempty"`
	WarnFullSeconds float64 `json:"warn_full_within_seconds,omitempty"` // wal.warn_full_within: with less left, there is a problem

	Appended      uint64    `json:"samples_appended"` // since the start
	Refused       uint64    `json:"samples_refused"`  // since the start: the log could not take them, so they were not acknowledged
	Series        int       `json:"series"`
	Error         string    `json:"error,omitempty"` // why writes fail at present
	ErrorSince    time.Time `json:"error_since,omitzero"`
	SamplesPerSec float64   `json:"samples_per_second"` // over a minute
}

// TargetStatus describes one remote-write target.
type TargetStatus struct {
	Name  string `json:"name"`
	URL   string `json:"url"`   // without user, password and query
	State string `json:"state"` // ok, behind, retrying, held, paused, starting, orphan, stopped
	// Delivery says what happens to the target's data, see [Judge]: delivering, never_delivered, behind, held, losing,
	// lost, paused, unknown.
	Delivery string `json:"delivery,omitempty"`
	// Why says in words what the target waits for, if State is not ok.
	Why string `json:"why,omitempty"`

	PausedSince time.Time `json:"paused_since,omitzero"` // since when it is paused by command

	LagSeconds      float64   `json:"lag_seconds"` // age of the oldest sample without an outcome; 0 if none
	OldestPending   time.Time `json:"oldest_pending,omitzero"`
	PendingSamples  uint64    `json:"pending_samples"`
	PendingBytes    int64     `json:"pending_bytes"`
	MaxBacklogBytes int64     `json:"max_backlog_bytes,omitempty"` // limit of its backlog; 0: only the log's own
	MissedSamples   uint64    `json:"missed_samples,omitempty"`    // of these, the samples of a backlog that is sent beside fresh ones: see catch_up
	SentPerSec      float64   `json:"sent_per_second"`             // over a minute

	Ledger LedgerStatus `json:"ledger"`
	// LostAtMost says that Ledger.Lost is an upper bound: a full log drops ranges unread, and those of this target also have
	// samples of other tenants, or ones that write_relabel_configs removes.
	LostAtMost bool `json:"lost_at_most,omitempty"`

	Protocol      string    `json:"protocol,omitempty"`          // the version of remote write in use
	Fallback      string    `json:"protocol_fallback,omitempty"` // why that is 1.0 although 2.0 was asked for
	FallbackUntil time.Time `json:"protocol_fallback_until,omitzero"`

	Compression string `json:"compression,omitempty"`          // of requests with samples, in use: snappy, zstd
	Plain       string `json:"compression_fallback,omitempty"` // why that is snappy although zstd was in use, or asked for

	Shards        int           `json:"shards"`
	MaxShards     int           `json:"max_shards"`
	Retries       uint64        `json:"retries"`                     // requests whose samples were sent before
	Failed        uint64        `json:"failed_requests"`             // of any kind, that the receiver did not accept
	Credentials   string        `json:"credentials_error,omitempty"` // why credential files cannot be used as they are now; former contents, if any, are in use
	CredentialsAt time.Time     `json:"credentials_at,omitzero"`     // when the credentials in use were read, if they have changed since the start
	LastSuccess   time.Time     `json:"last_success,omitzero"`
	LastError     string        `json:"last_error,omitempty"`
	LastErrorAt   time.Time     `json:"last_error_at,omitzero"`
	LastRefusal   string        `json:"last_refusal,omitempty"` // the last error that was a refusal of samples, whatever came after it
	LastRefusalAt time.Time     `json:"last_refusal_at,omitzero"`
	Failure       string        `json:"failure,omitempty"`      // the kind of last_error: credentials, path, proxy, …
	Try           string        `json:"try,omitempty"`          // remedy, while no data gets through
	Permanent     bool          `json:"permanent,omitempty"`    // the failure lasts until a person acts: waiting cannot help
	DownSince     time.Time     `json:"down_since,omitzero"`    // since when it accepts nothing, also before a restart or reload; stays until it accepts something
	NextTry       time.Time     `json:"next_try,omitzero"`      // when backing off or held
	AwaitsClock   bool          `json:"awaits_clock,omitempty"` // held because it refuses samples as ahead of its clock
	ClockSkew     time.Duration `json:"clock_skew_ns"`          // this host's clock minus the receiver's Date; 0 if unknown
	FutureLimit   time.Duration `json:"future_limit_ns"`        // samples further ahead of the receiver's clock are not sent; 0: no limit
	DeadLetters   int           `json:"dead_letters"`           // how many are kept

	Muted []MuteStatus `json:"muted,omitempty"` // series that are not sent at present, by reason

	Expiries []ExpiryStatus `json:"expiries,omitempty"`

	Tenant  string         `json:"tenant,omitempty"`  // tenant of its requests
	Tenants *TenantsStatus `json:"tenants,omitempty"` // for the target with the name of an entry with tenants, which gets unrouted samples
}

// TenantsStatus describes the tenants of an entry.
type TenantsStatus struct {
	Label   string `json:"label"`
	Header  string `json:"header"`
	Default string `json:"default,omitempty"`
	Max     int    `json:"max_tenants"`
	Known   int    `json:"known"` // tenants with a target of their own

	// Strangers are values of the label without a target of their own, the first twenty. Their samples go to the
	// default tenant, or are dropped if there is none.
	Strangers []StrangerStatus `json:"strangers,omitempty"`
}

// StrangerStatus is a value of the label without a target of its own.
type StrangerStatus struct {
	Value string `json:"value"`
	Why   string `json:"why"`
}

// LedgerStatus is a target's account in samples since it was first known.
//
// Invariant: Appended = Delivered + Filtered + ΣDropped + Pending.
type LedgerStatus struct {
	Appended  uint64            `json:"appended"`          // in the log, for this target
	Delivered uint64            `json:"delivered"`         // accepted by the receiver
	Filtered  uint64            `json:"filtered"`          // removed by write_relabel_configs, or of other tenants
	Dropped   map[string]uint64 `json:"dropped,omitempty"` // by reason
	Lost      uint64            `json:"lost"`              // the part of Dropped that the receiver does not have: all but unconfirmed
	Pending   uint64            `json:"pending"`           // waiting
	Balanced  bool              `json:"balanced"`          // the account adds up
}

// ProbeStatus describes one probe.
type ProbeStatus struct {
	Name      string        `json:"name"`
	Type      string        `json:"type"`
	Target    string        `json:"target,omitempty"`
	Interval  time.Duration `json:"interval_ns"`
	State     string        `json:"state"`              // waiting, ok, failing, running, hung
	FirstRun  time.Time     `json:"first_run,omitzero"` // when its first round began, or will begin
	LastRun   time.Time     `json:"last_run,omitzero"`
	Took      time.Duration `json:"took_ns"` // of the last round, as the number of its samples
	Samples   int           `json:"samples"`
	Failures  int           `json:"consecutive_failures"`
	Skipped   uint64        `json:"skipped_rounds"`  // because the round before still ran
	Refused   uint64        `json:"refused_samples"` // not acknowledged by the log, or invalid
	LastError string        `json:"last_error,omitempty"`
}

// PullStatus describes the endpoint that serves the newest values to scrapers.
type PullStatus struct {
	Listen string `json:"listen"`
	TLS    bool   `json:"tls"`
	Open   bool   `json:"open"` // other hosts can reach it, without authentication
	// Unshown is how many series the last answer left out: native histograms, if it was text.
	Unshown int          `json:"unshown_series"`
	Panics  *PanicStatus `json:"panics,omitempty"`
}

// InputStatus describes one input's series and samples.
type InputStatus struct {
	Kind      string    `json:"kind"` // probe, scrape, receiver
	Name      string    `json:"name"`
	Series    int       `json:"series"`                       // at present
	MaxSeries int       `json:"max_series,omitempty"`         // its limit
	Filtered  uint64    `json:"samples_filtered,omitempty"`   // dropped by its metric_relabel_configs; 0 for scrapes
	Refused   uint64    `json:"samples_over_limit,omitempty"` // samples of series beyond the limit
	OverSince time.Time `json:"over_limit_since,omitzero"`
	Example   string    `json:"over_limit_example,omitempty"` // a series that was refused

	Panics *PanicStatus `json:"panics,omitempty"`
}

// PanicStatus describes panics in the work of an input. Each cost a round or a request.
type PanicStatus struct {
	Count uint64    `json:"count"` // since the agent started, or the input was configured
	Since time.Time `json:"since"` // the first one
	Last  time.Time `json:"last"`
	Error string    `json:"error"` // the last one: what panicked, and where
}

// DuplicateStatus describes series that come from two inputs.
type DuplicateStatus struct {
	Input   string    `json:"input"` // the input that had them first, as in "probe host"
	Other   string    `json:"other"`
	Series  int       `json:"series"`
	Samples uint64    `json:"samples"` // samples from the other input since then
	Example string    `json:"example"`
	Sent    bool      `json:"same_as_sent,omitempty"` // they become the same by external_labels or the escaping of names
	Since   time.Time `json:"since"`
}

// Problem is one present or coming problem that a person must solve.
type Problem struct {
	Severity string `json:"severity"`      // error, warning
	Subject  string `json:"subject"`       // "target mimir", "probe bmc", "log", "config"
	Text     string `json:"text"`          // what and why
	Try      string `json:"try,omitempty"` // what to do
}
