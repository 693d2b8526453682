//go:build unix

package check

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestCheckMeetsPipes: check reports a pipe in place of a file as a mistake. Reading it would block forever.
func TestCheckMeetsPipes(t *testing.T) {
	target := receiver(t, false, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }).URL
	for name, text := range map[string]string{
		"token":                 "remote_write: [{name: x, url: %[2]q, bearer_token_file: %[1]q}]",
		"key of a target":       "remote_write: [{name: x, url: %[2]q, tls_config: {cert_file: %[1]q, key_file: %[1]q}}]",
		"value":                 "remote_write: [{name: x, url: %[2]q, authorization: {credentials: \"${file:%[1]s}\"}}]",
		"page":                  "web: {listen: '127.0.0.1:0', config_file: %[1]q}",
		"receiver":              "receivers: {remote_write: {listen: '127.0.0.1:0', web_config_file: %[1]q}}",
		"pull":                  "pull: {listen: '127.0.0.1:0', web_config_file: %[1]q}",
		"token of a job":        "scrape_configs: [{job_name: x, authorization: {credentials_file: %[1]q}, static_configs: [{targets: ['127.0.0.1:1']}]}]",
		"authority of a job":    "scrape_configs: [{job_name: x, tls_config: {ca_file: %[1]q}, static_configs: [{targets: ['127.0.0.1:1']}]}]",
		"password of a BMC":     "probes: [{name: x, type: ipmi, target: '127.0.0.1:1', username: a, password_file: %[1]q}]",
		"password of a UPS":     "probes: [{name: x, type: nut, target: '127.0.0.1:1', username: a, password_file: %[1]q}]",
		"password of a service": "probes: [{name: x, type: redfish, target: '127.0.0.1:1', username: a, password_file: %[1]q}]",
		"conf.d":                "# %[1]s %[2]s",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			pipe := filepath.Join(dir, "conf.d", "pipe.yaml")
			if name != "conf.d" {
				pipe = filepath.Join(dir, "pipe")
			} else if err := os.Mkdir(filepath.Dir(pipe), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := unix.Mkfifo(pipe, 0o600); err != nil {
				t.Fatal(err)
			}
			file := write(t, filepath.Join(dir, "agent.yaml"), fmt.Sprintf(text, pipe, target)+"\n", 0o600)
			done := make(chan Report, 1)
			go func() {
				r, err := Run(t.Context(), Options{ConfigFile: file, StoragePath: filepath.Join(dir, "data"), Level: Live, Env: noEnv, RunProbe: runProbe})
				if err != nil {
					t.Error(err)
				}
				done <- r
			}()
			select {
			case r := <-done:
				var said strings.Builder
				if err := r.WriteText(&said); err != nil || r.Result != Fail || !strings.Contains(said.String(), "not a regular file") {
					t.Errorf("%v\n%s", err, said.String())
				}
			case <-time.After(20 * time.Second):
				t.Error("the check hangs")
				if f, err := os.OpenFile(pipe, os.O_RDWR, 0); err == nil { // lets the reader go on
					_ = f.Close()
				}
			}
		})
	}
}
