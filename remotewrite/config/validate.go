package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
)

// Problem is one finding about a remote_write entry.
type Problem struct {
	Path string // dotted, from the entry: "queue_config.max_shards"; "" for the entry as a whole
	Text string // what is wrong and why
	Hint string // what to do; may be ""
}

// Error returns path, text and hint in one line.
func (p Problem) Error() string {
	s := p.Text
	if p.Path != "" {
		s = p.Path + ": " + s
	}
	if p.Hint != "" {
		s += " (" + p.Hint + ")"
	}
	return s
}

// findings collects problems.
type findings []Problem

func (f *findings) add(path, text string) { *f = append(*f, Problem{Path: path, Text: text}) }

func (f *findings) hint(path, text, hint string) {
	*f = append(*f, Problem{Path: path, Text: text, Hint: hint})
}

// Validate returns all problems of the entry. It also moves the old
// spellings of authentication (bearer_token, bearer_token_file) to the new
// ones, and completes the relabelling rules. It does no I/O.
func (c *Config) Validate() []Problem {
	var f findings
	c.validateURL(&f)
	c.validateAuth(&f)
	c.validateHeaders(&f)
	c.validateQueue(&f)
	c.validateTenant(&f)
	for i, r := range c.WriteRelabelConfigs {
		path := fmt.Sprintf("write_relabel_configs[%d]", i)
		if r == nil {
			f.add(path, "the rule is empty")
		} else if err := r.Validate(NameValidation); err != nil {
			f.add(path, err.Error())
		}
	}
	t := &c.Target
	oneOf(&f, "hwsagent.on_refusal", t.OnRefusal, RefusalHold, RefusalDrop)
	oneOf(&f, "hwsagent.catch_up", t.CatchUp, InOrder, LiveFirst)
	oneOf(&f, "hwsagent.compression", t.Compression, CompressionSnappy, CompressionZstd)
	oneOf(&f, "hwsagent.start_at", t.StartAt, StartNow, StartOldest)
	if rate := c.Target.CatchUpRateLimit; !(rate >= 0 && rate <= 1e9) {
		f.hint("hwsagent.catch_up_rate_limit", fmt.Sprintf("%v is not a number of samples a second", rate), "write 0 for no limit, or how many samples of the backlog may be sent in a second")
	}
	switch c.ProtobufMessage {
	case MessageV1, MessageV2, MessageAuto:
	default:
		f.hint("protobuf_message", fmt.Sprintf("unknown message %q", c.ProtobufMessage),
			"write "+MessageV1+", "+MessageV2+" or "+MessageAuto)
	}
	return f
}

// oneOf refuses any value but the given words.
func oneOf[T ~string](f *findings, path string, value T, words ...T) {
	if !slices.Contains(words, value) {
		f.add(path, fmt.Sprintf("%q is not one of %s", value, strings.Trim(strings.ReplaceAll(fmt.Sprint(words), " ", ", "), "[]")))
	}
}

func (c *Config) validateURL(f *findings) {
	u := c.URL.full
	switch {
	case u == nil:
		f.add("url", "missing")
	case u.Scheme != "http" && u.Scheme != "https":
		f.hint("url", fmt.Sprintf("scheme %q is not http or https", u.Scheme), "write it like https://host:port/path")
	case u.Hostname() == "":
		f.hint("url", "has no host", "write it like https://host:port/path")
	case u.Fragment != "":
		f.add("url", "has a fragment (#…), which is never sent")
	}
}

func (c *Config) validateQueue(f *findings) {
	atLeast := func(path string, n, least int) {
		if n < least {
			f.add(path, fmt.Sprintf("%d is below %d", n, least))
		}
	}
	positive := func(path string, d model.Duration) {
		if d <= 0 {
			f.add(path, "must be more than 0s")
		}
	}
	q := &c.Queue
	atLeast("queue_config.capacity", q.Capacity, 1)
	atLeast("queue_config.max_shards", q.MaxShards, 1)
	atLeast("queue_config.min_shards", q.MinShards, 1)
	atLeast("queue_config.max_samples_per_send", q.MaxSamplesPerSend, 1)
	if q.MaxShards >= 1 && q.MinShards > q.MaxShards { // else that mistake is reported already
		f.add("queue_config.min_shards", fmt.Sprintf("%d is above max_shards, %d", q.MinShards, q.MaxShards))
	}
	positive("queue_config.batch_send_deadline", q.BatchSendDeadline)
	positive("queue_config.min_backoff", q.MinBackoff)
	if q.MaxBackoff < q.MinBackoff {
		f.add("queue_config.max_backoff", fmt.Sprintf("%s is below min_backoff, %s", q.MaxBackoff, q.MinBackoff))
	}
	positive("remote_timeout", c.RemoteTimeout)
	if c.Metadata.Send {
		positive("metadata_config.send_interval", c.Metadata.SendInterval)
		atLeast("metadata_config.max_samples_per_send", c.Metadata.MaxSamplesPerSend, 1)
	}
}

// Warnings returns settings that are legal but have no effect or are probably unintended. It
// expects an entry without problems.
func (c *Config) Warnings() []Problem {
	var f findings
	if c.HTTP.FollowRedirects {
		f.hint("follow_redirects", "has no effect: redirects are never followed, because tokens and data leak that way", "write the final URL")
	}
	if c.FailedRequestLogging {
		f.add("failed_request_logging", "has no effect: refused samples are always logged, and kept as dead letters")
	}
	if c.Queue.MaxShards != DefaultConfig().Queue.MaxShards {
		warnShards(&f, "queue_config.max_shards", c.Queue.MaxShards)
	}
	warnShards(&f, "queue_config.min_shards", c.Queue.MinShards)
	if t := c.Target.Tenant; t != nil && t.Default == "" {
		f.hint("hwsagent.tenant", fmt.Sprintf("has no default: samples without the label %s are dropped and counted, those of the agent itself among them", t.Label),
			"name a default tenant, or set the label with external_labels")
	}
	u := c.URL.full
	if u == nil {
		return f
	}
	c.warnAuth(&f)
	return f
}

// warnShards warns if the queue uses fewer shards than the entry asks for.
func warnShards(f *findings, path string, n int) {
	if used := ShardsInUse(n); used != n {
		f.hint(path, fmt.Sprintf("%d has the effect of %d: shards come in powers of two, at most %d", n, used, MaxShards), "4 carry 80,000 samples a second")
	}
}
