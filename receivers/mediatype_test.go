package receivers_test

import (
	"testing"

	"hwsagent/receivers"
)

func TestCheckText(t *testing.T) {
	for contentType, taken := range map[string]bool{
		"":                          true,
		"text/plain":                true,
		"TEXT/PLAIN; charset=utf-8": true,
		"text/plain; version=0.0.4; charset=utf-8":            true,
		"text/plain; version":                                 true, // the parameter cannot be read
		"application/openmetrics-text; version=1.0.0":         true,
		"application/x-www-form-urlencoded":                   true,
		"application/octet-stream":                            true,
		"application/json":                                    false,
		"application/x-protobuf":                              false,
		"application/vnd.google.protobuf; encoding=delimited": false,
		"multipart/form-data; boundary=x":                     false,
		"text/html":                                           false,
		"text/plain, application/json":                        false,
		";":                                                   false,
		"nothing":                                             false,
	} {
		if err := receivers.CheckText(contentType); (err == nil) != taken {
			t.Errorf("%q: %v, want taken = %t", contentType, err, taken)
		}
	}
}
