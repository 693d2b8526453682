package ipmi

import (
	"bytes"
	"errors"
	"testing"
	"time"
)

// TestDeviceAnswer: a command that the kernel's driver gives up counts as silence; an answer of the BMC itself does not.
func TestDeviceAnswer(t *testing.T) {
	other := errors.New("another error")
	for name, tc := range map[string]struct {
		answer []byte
		err    error
		took   time.Duration
		want   []byte
		is     error
	}{
		"an answer":                          {answer: []byte{0, 1, 2}, want: []byte{1, 2}},
		"nothing":                            {is: errShort},
		"a refusal":                          {answer: []byte{0xc1}, is: invalidCommand},
		"a late refusal":                     {answer: []byte{0xc1}, took: 5 * time.Second, is: invalidCommand},
		"a sensor that is slow":              {answer: []byte{0xc3}, took: time.Second, is: tookTooLong},
		"a BMC that hangs":                   {answer: []byte{0xc3}, took: 4 * time.Second, is: errSilent},
		"a driver that hangs":                {err: other, took: deviceTimeout, is: errSilent},
		"a device that is gone, in no time":  {err: other, is: other},
		"a refusal with something behind it": {answer: []byte{0xcb, 1}, is: notPresent},
	} {
		got, err := deviceAnswer(tc.answer, tc.err, tc.took, deviceTimeout)
		if !bytes.Equal(got, tc.want) || !errors.Is(err, tc.is) {
			t.Errorf("%s: % x, %v", name, got, err)
		}
	}
}
