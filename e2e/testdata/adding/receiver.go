// Package toy receives one number as the body of a request.
package toy

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"

	"hwsagent/receivers"
)

// New returns the handler of the receiver.
func New(g *receivers.Gate) http.Handler {
	return g.Handler(func(_ http.ResponseWriter, r *receivers.Request) error {
		v, err := strconv.ParseFloat(string(r.Body), 64)
		if err != nil {
			return receivers.Refuse(receivers.BadRequest, http.StatusBadRequest, "the body is not a number")
		}
		b := r.Batch()
		defer b.Rollback()
		if err := b.Series(labels.FromStrings("__name__", "toy_received"), "toy_received", metadata.Metadata{}); err != nil {
			return err
		}
		if err := b.Append(0, time.Now().UnixMilli(), v, nil, nil); err != nil {
			return err
		}
		_, err = b.Commit()
		return err
	}, nil)
}
