package redact

import (
	"context"
	"fmt"
	"log/slog"
)

// Handler returns a log handler that applies cut to the message and each text of a record before it passes the record
// to next. Use it for logs of third-party packages. cut must be safe for concurrent use.
func Handler(next slog.Handler, cut func(string) string) slog.Handler { return &handler{next, cut} }

type handler struct {
	next slog.Handler
	cut  func(string) string
}

// Enabled implements [slog.Handler].
func (h *handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

// Handle implements [slog.Handler].
func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	out := slog.NewRecord(r.Time, r.Level, h.cut(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(h.attr(a))
		return true
	})
	return h.next.Handle(ctx, out)
}

// WithAttrs implements [slog.Handler].
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	cut := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		cut[i] = h.attr(a)
	}
	return &handler{h.next.WithAttrs(cut), h.cut}
}

// WithGroup implements [slog.Handler].
func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{h.next.WithGroup(name), h.cut}
}

func (h *handler) attr(a slog.Attr) slog.Attr {
	a.Value = a.Value.Resolve()
	switch a.Value.Kind() {
	case slog.KindString:
		a.Value = slog.StringValue(h.cut(a.Value.String()))
	case slog.KindAny:
		text := fmt.Sprint(a.Value.Any())
		if cut := h.cut(text); cut != text {
			a.Value = slog.StringValue(cut)
		}
	case slog.KindGroup:
		var inner []slog.Attr
		for _, one := range a.Value.Group() {
			inner = append(inner, h.attr(one))
		}
		a.Value = slog.GroupValue(inner...)
	}
	return a
}
