package reply

import (
	"strconv"
	"strings"
)

// Names returns how well a text identifies a sample: 0 if it has the labels of its series, as Prometheus, Mimir and Thanos
// write them, and its timestamp in ms; 1 if it has the labels alone; 2 if it has neither.
func Names(text, series string, t int64) int {
	switch {
	case !strings.Contains(text, series):
		return 2
	case !strings.Contains(text, strconv.FormatInt(t, 10)):
		return 1
	}
	return 0
}
