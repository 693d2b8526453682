package scrape

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
)

// Bounds of names and values together. The labels library panics at a label of 16 MiB.
const (
	maxLabelBytes  = 1 << 20  // of a target, or of a series while it is relabelled: annotations of a Kubernetes object may have 256 KiB
	maxSeriesBytes = 64 << 10 // of a series as its page shows it: the log has no longer labels
)

// Labels of a target that override a setting of its job, as in Prometheus.
const (
	convertLabel = "__convert_classic_histograms_to_nhcb__"
	classicLabel = "__always_scrape_classic_histograms__"
	nativeLabel  = "__scrape_native_histograms__"
	socketLabel  = "__unix_socket__"
)

// tooLongError means that labels have more bytes than they may have.
type tooLongError struct{ bytes, most int }

func (e tooLongError) Error() string {
	return fmt.Sprintf("the labels have %d bytes, more than the %d that the agent keeps", e.bytes, e.most)
}

// discovered sets b to the labels of a target before relabelling: its own, those of its group,
// and the settings of its job.
func discovered(b *labels.Builder, cfg *settings, own, group model.LabelSet) {
	b.Reset(labels.EmptyLabels())
	for name, value := range group {
		b.Set(string(name), string(value))
	}
	for name, value := range own {
		b.Set(string(name), string(value))
	}
	unless := func(name, value string) {
		if b.Get(name) == "" {
			b.Set(name, value)
		}
	}
	unless(model.JobLabel, cfg.JobName)
	unless(model.ScrapeIntervalLabel, cfg.ScrapeInterval.String())
	unless(model.ScrapeTimeoutLabel, cfg.ScrapeTimeout.String())
	unless(model.MetricsPathLabel, cfg.MetricsPath)
	unless(model.SchemeLabel, cfg.Scheme)
	unless(convertLabel, strconv.FormatBool(cfg.convert()))
	unless(classicLabel, strconv.FormatBool(cfg.classic()))
	unless(nativeLabel, strconv.FormatBool(cfg.native()))
	for name, values := range cfg.Params {
		if len(values) > 0 {
			unless(model.ParamLabelPrefix+name, values[0])
		}
	}
}

// setBytes returns the size of discovered labels.
func setBytes(sets ...model.LabelSet) (n int) {
	for _, set := range sets {
		for name, value := range set {
			n += len(name) + len(value)
		}
	}
	return n
}

// targetLabels returns the labels of a target after relabelling, including those that begin with
// __, but without those of discovery (__meta_). If relabelling drops the target, they are empty
// and the error is nil.
func targetLabels(b *labels.Builder, cfg *settings, own, group model.LabelSet) (labels.Labels, error) {
	if n := setBytes(own, group); n > maxLabelBytes {
		return labels.EmptyLabels(), tooLongError{n, maxLabelBytes}
	}
	discovered(b, cfg, own, group)
	keep, err := relabelled(b, cfg.RelabelConfigs)
	if err != nil || !keep {
		return labels.EmptyLabels(), err
	}
	if err := checkTarget(b); err != nil {
		return labels.EmptyLabels(), err
	}
	b.Range(func(l labels.Label) {
		if strings.HasPrefix(l.Name, model.MetaLabelPrefix) {
			b.Del(l.Name)
		}
	})
	if b.Get(model.InstanceLabel) == "" {
		b.Set(model.InstanceLabel, b.Get(model.AddressLabel))
	}
	all := b.Labels()
	return all, all.Validate(func(l labels.Label) error {
		if !model.LabelValue(l.Value).IsValid() {
			return fmt.Errorf("the value of the label %q is not UTF-8: %q", l.Name, l.Value)
		}
		return nil
	})
}

// checkTarget checks the labels of a target that configure its scrapes.
func checkTarget(b *labels.Builder) error {
	address := b.Get(model.AddressLabel)
	if address == "" {
		return errors.New("it has no address: the label __address__ is empty")
	}
	if err := checkAddress(address); err != nil {
		return err
	}
	interval, err := duration(b, model.ScrapeIntervalLabel)
	if err != nil {
		return err
	}
	timeout, err := duration(b, model.ScrapeTimeoutLabel)
	if err != nil {
		return err
	}
	if timeout > interval {
		return fmt.Errorf("its timeout of %s is longer than its interval of %s", timeout, interval)
	}
	for _, name := range []string{convertLabel, classicLabel, nativeLabel} {
		if value := b.Get(name); value != "" {
			if _, err := strconv.ParseBool(value); err != nil {
				return fmt.Errorf("the label %s must be true or false, and is %q", name, value)
			}
		}
	}
	return nil
}

// duration parses the duration in a label; it must be positive.
func duration(b *labels.Builder, name string) (time.Duration, error) {
	d, err := model.ParseDuration(b.Get(name))
	if err != nil {
		return 0, fmt.Errorf("read the label %s: %w", name, err)
	}
	if d == 0 {
		return 0, fmt.Errorf("the label %s must not be 0", name)
	}
	return time.Duration(d), nil
}

// relabelled applies rules to b one by one, since each rule may lengthen the labels, and the labels
// library panics at labels that are too long. keep is false if a rule drops the whole.
func relabelled(b *labels.Builder, rules []*relabel.Config) (keep bool, err error) {
	for i := range rules {
		if !relabel.ProcessBuilder(b, rules[i:i+1]...) {
			return false, nil
		}
		n := 0
		b.Range(func(l labels.Label) { n += len(l.Name) + len(l.Value) })
		if n > maxLabelBytes {
			return false, fmt.Errorf("after relabelling rule %d: %w", i+1, tooLongError{n, maxLabelBytes})
		}
	}
	return true, nil
}

// withTarget adds the labels of the target to those of a sample, to which b was reset. If both have a
// label, the sample's value wins if honor is set, even if it is empty. Otherwise the target's value
// wins, and the sample's moves to a label of that name prefixed with exported_, repeated until the
// name is free.
func withTarget(b *labels.Builder, sample, target labels.Labels, honor bool) {
	var moved []labels.Label
	target.Range(func(l labels.Label) {
		if honor && sample.Has(l.Name) {
			return
		}
		if have := sample.Get(l.Name); have != "" && !honor {
			moved = append(moved, labels.Label{Name: l.Name, Value: have})
		}
		b.Set(l.Name, l.Value)
	})
	// Shortest name first, so that a and exported_a do not change places.
	slices.SortStableFunc(moved, func(x, y labels.Label) int { return len(x.Name) - len(y.Name) })
	for _, l := range moved {
		name := model.ExportedLabelPrefix + l.Name
		for b.Get(name) != "" {
			name = model.ExportedLabelPrefix + name
		}
		b.Set(name, l.Value)
	}
}

// labelLimits are label_limit, label_name_length_limit and label_value_length_limit; 0 means no limit.
type labelLimits struct{ count, name, value int }

// check returns an error if a series has more or longer labels. That fails the scrape.
func (lim labelLimits) check(ls labels.Labels) error {
	name := ls.Get(model.MetricNameLabel)
	if lim.count > 0 && ls.Len() > lim.count {
		return fmt.Errorf("label_limit exceeded (metric: %.50s, number of labels: %d, limit: %d)", name, ls.Len(), lim.count)
	}
	if lim.name == 0 && lim.value == 0 {
		return nil
	}
	return ls.Validate(func(l labels.Label) error {
		if lim.name > 0 && len(l.Name) > lim.name {
			return fmt.Errorf("label_name_length_limit exceeded (metric: %.50s, label name: %.50s, length: %d, limit: %d)", name, l.Name, len(l.Name), lim.name)
		}
		if lim.value > 0 && len(l.Value) > lim.value {
			return fmt.Errorf("label_value_length_limit exceeded (metric: %.50s, label name: %.50s, value: %.50q, length: %d, limit: %d)", name, l.Name, l.Value, len(l.Value), lim.value)
		}
		return nil
	})
}
