package protocol

import (
	"log/slog"
	"testing"
)

func TestLastReason(t *testing.T) {
	var last LastReason
	if was := last.Regained(); was != "" {
		t.Errorf("told of %q before anything was lost", was)
	}
	for i, step := range []struct {
		why    string
		wanted bool
		want   slog.Level
	}{{"a", true, slog.LevelWarn}, {"a", true, slog.LevelDebug}, {"b", false, slog.LevelInfo}, {"a", false, slog.LevelInfo}} {
		if got := last.Lost(step.why, step.wanted); got != step.want {
			t.Errorf("step %d: %v, want %v", i, got, step.want)
		}
	}
	if was := last.Regained(); was != "a" {
		t.Errorf("it was %q that people were told of, want a", was)
	}
	if got := last.Lost("a", true); got != slog.LevelWarn {
		t.Errorf("the same reason, after it was regained: %v", got)
	}
}
