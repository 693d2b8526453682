package config

import (
	"os"
	"path/filepath"
	"testing"
)

// TestFileValueWithByteOrderMark: ${file:…} is the text in the file, without what an editor puts before it.
func TestFileValueWithByteOrderMark(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"host": "\ufeffexample.org\r\n", "agent.yaml": "remote_write: [{name: a, url: \"http://${file:host}/\"}]\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cfg, _, err := Load(filepath.Join(dir, "agent.yaml"), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	if got := cfg.RemoteWrite[0].URL.String(); got != "http://example.org/" {
		t.Errorf("the address is %q", got)
	}
}
