//go:build linux && amd64

package lab

import (
	"fmt"
	"os"
	"testing"
	"time"

	"hwsagent/agent/demo/receiver"
)

func TestMachine(t *testing.T) {
	laboratory(t)
	r := newRecord()
	rx := receiver.New(receiver.Options{Sink: r.add})
	if err := rx.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(rx.Stop)
	v := startLab(t, rx.URL())
	for _, job := range []string{"host", "smart", "ipmi"} {
		eventually(t, 2*time.Minute, func() string {
			if got := len(rounds(r.copy(), job, 0)); got < 2 {
				return fmt.Sprintf("there are %d rounds of %s", got, job)
			}
			return ""
		})
	}
	setSensors(v)
	for _, job := range []string{"host", "smart", "ipmi"} {
		from := rounds(r.copy(), job, 0)
		eventually(t, 2*time.Minute, func() string {
			if got := len(rounds(r.copy(), job, 0)); got < len(from)+3 {
				return fmt.Sprintf("there are %d rounds of %s", got, job)
			}
			return ""
		})
	}
	t.Run("node_exporter", func(t *testing.T) { compareExporter(t, v, r) })
	t.Run("smartctl", func(t *testing.T) { compareSmartctl(t, v, r) })
	t.Run("nvme-cli", func(t *testing.T) { compareNVMe(t, v, r) })
	t.Run("ipmitool", func(t *testing.T) { compareIPMI(t, v, r) })
	if os.Getenv("LAB_HOLD") != "" {
		fmt.Println("BASE", v.base)
		for {
			time.Sleep(time.Second)
			if _, err := os.Stat("/work/try/lab/end"); err == nil {
				break
			}
			f, _ := os.Create("/work/try/lab/series")
			for k, s := range r.copy() {
				fmt.Fprintln(f, k, len(s.samples), s.samples[len(s.samples)-1])
			}
			f.Close()
		}
	}
}
