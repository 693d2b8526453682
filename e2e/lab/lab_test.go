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
