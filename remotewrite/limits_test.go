package remotewrite

import (
	"fmt"
	"testing"
)

const limitWords = "per-user series limit of 150000 exceeded, please contact administrator to raise it (per-ingester local limit: 1000)"

// checkStored checks that the receiver has every sample of the log.
func checkStored(t *testing.T, r *rig) {
	t.Helper()
	missing := 0
	for _, e := range r.log.entries {
		for _, s := range e.Samples {
			if !r.to.has[smp{s.Series.Labels.Get("__name__"), s.T, s.V}] {
				missing++
			}
		}
	}
	if missing > 0 {
		t.Errorf("receiver lacks %d samples; %s", missing, fmt.Sprint(r.log.outcome()))
	}
	for name, ss := range r.to.stored {
		for i := 1; i < len(ss); i++ {
			if ss[i].t <= ss[i-1].t && !r.to.anyOrder {
				t.Errorf("series %s is out of order", name)
			}
		}
	}
}
