package wire

import (
	"bytes"
	"testing"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
)

// TestBodyIsTheGeneratedEncoding: a request without samples has the bytes that the generated types of Prometheus write.
func TestBodyIsTheGeneratedEncoding(t *testing.T) {
	metadata := &prompb.WriteRequest{Metadata: []prompb.MetricMetadata{
		{Type: prompb.MetricMetadata_COUNTER, MetricFamilyName: "hw_energy_joules_total", Help: "Energy: \"Ωh\"\n", Unit: "joules"},
		{Type: prompb.MetricMetadata_GAUGE, MetricFamilyName: "hw_fan_speed_rpm"},
		{},
	}}
	empty, empty2 := &prompb.WriteRequest{}, &writev2.Request{Symbols: []string{""}}
	for name, c := range map[string]struct {
		got  []byte
		want interface{ Marshal() ([]byte, error) }
	}{
		"metadata":  {Body(metadata), metadata},
		"empty 1.0": {Empty(V1), empty},
		"empty 2.0": {Empty(V2), empty2},
	} {
		raw, err := c.want.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if want := snappy.Encode(nil, raw); !bytes.Equal(c.got, want) {
			t.Errorf("%s: got %x, want %x", name, c.got, want)
		}
	}
	if raw, err := snappy.Decode(nil, Empty(V2)); err != nil || !bytes.Equal(raw, []byte{4<<3 | 2, 0}) {
		t.Errorf("empty 2.0: got %x, %v; want field 4 with an empty string", raw, err)
	}
}
