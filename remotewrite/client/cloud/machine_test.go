package cloud

import (
	"net/http"
	"strings"
	"testing"
)

// ec2 is the metadata service of an EC2 instance, or a substitute: lines is the end of its texts.
type ec2 struct{ lines string }

func (e ec2) Do(req *http.Request, near bool) (Response, error) {
	const list = "/latest/meta-data/iam/security-credentials/"
	switch token := req.Header.Get("X-Aws-Ec2-Metadata-Token"); {
	case near && req.Method == http.MethodPut && req.URL.Path == "/latest/api/token":
		return Response{Status: 200, Body: []byte("token" + e.lines)}, nil
	case token != "token":
		return Response{Status: 401}, nil
	case req.URL.Path == list:
		return Response{Status: 200, Body: []byte("a role" + e.lines)}, nil
	case req.URL.Path == list+"a role":
		return Response{Status: 200, Body: []byte(`{"AccessKeyId": "A", "SecretAccessKey": "s", "Token": "t"}` + e.lines)}, nil
	}
	return Response{Status: 404}, nil
}

// The texts of substitutes for Amazon's service, on other clouds and in tests, end with a newline.
func TestMachineWhoseTextsEndInLines(t *testing.T) {
	m, err := newMachine(Environment{Get: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	for _, lines := range []string{"", "\n", "\r\n"} {
		if k, _, err := m.keys(t.Context(), ec2{lines}); err != nil || k.ID != "A" || k.Session != "t" {
			t.Errorf("%q: %+v, %v", lines, k, err)
		}
	}
	if _, _, err := m.keys(t.Context(), ec2{"\nanother"}); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("a token of two lines: %v", err)
	}
}
