package receiver

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// FuzzDecode: no request makes the receiver panic, and what it takes has names and samples
// as the specification wants them.
func FuzzDecode(f *testing.F) {
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0x0f, 0})
	f.Add([]byte{0})
	f.Add([]byte("\x0c\x2c\x0a\x0a\x0a\x08\x0a\x08__name__"))
	f.Fuzz(func(t *testing.T, body []byte) {
		req, err := http.NewRequest(http.MethodPost, "/", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Encoding", "snappy")
		req.Header.Set("Content-Type", "application/x-protobuf")
		req.Header.Set("X-Prometheus-Remote-Write-Version", "0.1.0")
		wr, status, err := decode(req, body)
		if (err != nil) != (status >= 400) {
			t.Errorf("status %d, %v", status, err)
		}
		for _, ts := range wr.Timeseries {
			if err == nil && len(ts.Labels) == 0 {
				t.Error("a series without labels was taken")
			}
		}
	})
}

// FuzzJournal: whatever stands in a journal, the acknowledged numbers ascend, and a number
// that is noted afterwards is read, also behind a line that a kill cut short.
func FuzzJournal(f *testing.F) {
	f.Add([]byte("try 1\nack 1\ntry 2\n"))
	f.Add([]byte("ack 18446744073709551615\nack 3\nack"))
	f.Add([]byte("try -1\n\x00\ntry 1 2\nack  5\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		file := filepath.Join(t.TempDir(), "journal")
		if err := os.WriteFile(file, append(slices.Clone(b), "\ntry 77\n"...), 0o600); err != nil {
			t.Fatal(err)
		}
		j, err := ReadJournal(file)
		if err != nil || j.Tried < 77 || !slices.IsSorted(j.Acked) || len(slices.Compact(slices.Clone(j.Acked))) != len(j.Acked) {
			t.Errorf("%+v, %v", j, err)
		}
	})
}
