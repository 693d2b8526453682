package config

import (
	"fmt"
	"strings"
)

// Refusal is the hwsagent.on_refusal key: how a target treats samples whose request was answered with a
// 4xx.
type Refusal uint8

// The refusal policies.
const (
	RefusalHold Refusal = iota // keep them until the receiver accepts them, or proof shows that they are bad
	RefusalDrop                // follow the specification to the letter: never retry a 4xx
)

// Policy is the part of an entry that decides the outcome of refused samples.
type Policy struct {
	OnRefusal        Refusal
	RetryOnRateLimit bool // queue_config.retry_on_http_429
}

// String formats the policy as in the configuration.
func (r Refusal) String() string { return [...]string{"hold", "drop"}[r] }

// MarshalYAML formats the policy as in the configuration.
func (r Refusal) MarshalYAML() (any, error) { return r.String(), nil }

// UnmarshalYAML reads hold or drop.
func (r *Refusal) UnmarshalYAML(unmarshal func(any) error) error {
	return oneOf(unmarshal, r, RefusalHold, RefusalDrop)
}

// CatchUp is the hwsagent.catch_up key: the order in which a target gets its backlog.
type CatchUp uint8

// The orders.
const (
	InOrder   CatchUp = iota // oldest first
	LiveFirst                // new samples at once, the backlog in parallel
)

// String formats the order as in the configuration.
func (c CatchUp) String() string { return [...]string{"in_order", "live_first"}[c] }

// MarshalYAML formats the order as in the configuration.
func (c CatchUp) MarshalYAML() (any, error) { return c.String(), nil }

// UnmarshalYAML reads in_order or live_first.
func (c *CatchUp) UnmarshalYAML(unmarshal func(any) error) error {
	return oneOf(unmarshal, c, InOrder, LiveFirst)
}

// Compression is the hwsagent.compression key: how requests to a target are compressed.
type Compression uint8

// The compressions.
const (
	CompressionAuto   Compression = iota // zstd if the receiver identifies itself as VictoriaMetrics, else snappy
	CompressionSnappy                    // as specified
	CompressionZstd                      // like auto, but snappy causes a warning
)

// String formats the compression as in the configuration.
func (c Compression) String() string { return [...]string{"auto", "snappy", "zstd"}[c] }

// MarshalYAML formats the compression as in the configuration.
func (c Compression) MarshalYAML() (any, error) { return c.String(), nil }

// UnmarshalYAML reads auto, snappy or zstd.
func (c *Compression) UnmarshalYAML(unmarshal func(any) error) error {
	return oneOf(unmarshal, c, CompressionAuto, CompressionSnappy, CompressionZstd)
}

// OnFuture is the hwsagent.on_future key: how a target treats samples that are ahead of its clock by
// more than future_limit. Samples that are too far ahead of this host's present clock as well are dropped.
type OnFuture uint8

// The policies.
const (
	FutureWait OnFuture = iota // they wait until the target's clock has caught up
	FutureDrop                 // they are dropped
)

// StartAt is the hwsagent.start_at key: where in the log a new target begins.
type StartAt uint8

// The places to start at.
const (
	StartNow    StartAt = iota // the end of the log
	StartOldest                // the oldest sample in the log
)

// String formats the policy as in the configuration.
func (f OnFuture) String() string { return [...]string{"wait", "drop"}[f] }

// MarshalYAML formats the policy as in the configuration.
func (f OnFuture) MarshalYAML() (any, error) { return f.String(), nil }

// UnmarshalYAML reads wait or drop.
func (f *OnFuture) UnmarshalYAML(unmarshal func(any) error) error {
	return oneOf(unmarshal, f, FutureWait, FutureDrop)
}

// String formats the place as in the configuration.
func (s StartAt) String() string { return [...]string{"now", "oldest"}[s] }

// MarshalYAML formats the place as in the configuration.
func (s StartAt) MarshalYAML() (any, error) { return s.String(), nil }

// UnmarshalYAML reads now or oldest.
func (s *StartAt) UnmarshalYAML(unmarshal func(any) error) error {
	return oneOf(unmarshal, s, StartNow, StartOldest)
}

// oneOf decodes a word that must equal the String of one of the values.
func oneOf[T fmt.Stringer](unmarshal func(any) error, to *T, values ...T) error {
	var word string
	if err := unmarshal(&word); err != nil {
		return err
	}
	names := make([]string, len(values))
	for i, v := range values {
		if names[i] = v.String(); names[i] == word {
			*to = v
			return nil
		}
	}
	return fmt.Errorf("%q is not one of %s", word, strings.Join(names, ", "))
}

// Policy returns the entry's policy.
func (c *Config) Policy() Policy {
	return Policy{OnRefusal: c.Target.OnRefusal, RetryOnRateLimit: c.Queue.RetryOnRateLimit}
}
