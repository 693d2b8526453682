package cloud

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// sessionSeconds is the requested lifetime of a role's keys, as in Amazon's SDKs.
const sessionSeconds = "900"

// assume gets the keys of a role with other keys (sts:AssumeRole).
func (a *aws) assume(ctx context.Context, net Network, r role, with Keys) (Keys, time.Time, error) {
	values := url.Values{
		"Action": {"AssumeRole"}, "Version": {"2011-06-15"}, "DurationSeconds": {sessionSeconds},
		"RoleArn": {r.arn}, "RoleSessionName": {cmp.Or(r.session, "hwsagent")},
	}
	if r.externalID != "" {
		values.Set("ExternalId", r.externalID)
	}
	for i, name := range slices.Sorted(maps.Keys(r.tags)) {
		member := "Tags.member." + strconv.Itoa(i+1)
		values.Set(member+".Key", name)
		values.Set(member+".Value", r.tags[name])
	}
	req, err := form(ctx, a.sts, values)
	if err != nil {
		return Keys{}, time.Time{}, err
	}
	with.Region, with.Service = a.region, "sts"
	with.Sign(req, sha256.Sum256([]byte(values.Encode())), time.Now())
	return askSTS(net, req)
}

// webIdentity is a role assumed with the token of another issuer, such as that of a Kubernetes service
// account (sts:AssumeRoleWithWebIdentity).
type webIdentity struct {
	sts    string
	values url.Values
}

func (a *aws) webIdentity(file, arn, session string, files Files) (keyGiver, error) {
	if arn == "" {
		return nil, errors.New("there is a file with a web identity's token, and no AWS_ROLE_ARN")
	}
	token, err := files.Read(file)
	if err != nil {
		return nil, err
	}
	return &webIdentity{a.sts, url.Values{
		"Action": {"AssumeRoleWithWebIdentity"}, "Version": {"2011-06-15"},
		"RoleArn": {arn}, "RoleSessionName": {cmp.Or(session, "hwsagent")}, "WebIdentityToken": {token},
	}}, nil
}

func (w *webIdentity) secrets() []string { return w.values["WebIdentityToken"] }

func (w *webIdentity) keys(ctx context.Context, net Network) (Keys, time.Time, error) {
	req, err := form(ctx, w.sts, w.values)
	if err != nil {
		return Keys{}, time.Time{}, err
	}
	return askSTS(net, req)
}

// temporaryKeys are keys in the format of the security token service.
type temporaryKeys struct {
	ID      string    `xml:"AccessKeyId"`
	Secret  string    `xml:"SecretAccessKey"`
	Session string    `xml:"SessionToken"`
	End     time.Time `xml:"Expiration"`
}

// askSTS sends a request to the security token service.
func askSTS(net Network, req *http.Request) (Keys, time.Time, error) {
	resp, refused := call(net, req, false, func(body []byte) string {
		var e struct {
			Code    string `xml:"Error>Code"`
			Message string `xml:"Error>Message"`
		}
		if xml.Unmarshal(body, &e) != nil || e.Code == "" {
			return ""
		}
		return e.Code + ": " + e.Message
	})
	if refused != nil {
		return Keys{}, time.Time{}, refused
	}
	var answer struct {
		Role temporaryKeys `xml:"AssumeRoleResult>Credentials"`
		Web  temporaryKeys `xml:"AssumeRoleWithWebIdentityResult>Credentials"`
	}
	err := xml.Unmarshal(resp.Body, &answer)
	k := cmp.Or(answer.Role, answer.Web) // only one of them is in the answer
	if err != nil || k.ID == "" || k.Secret == "" {
		return Keys{}, time.Time{}, &Error{Place: place(req.URL), Status: resp.Status, Header: resp.Header, Text: "the answer has no keys"}
	}
	return Keys{ID: k.ID, Secret: k.Secret, Session: k.Session}, k.End, nil
}

// machine gets the keys of an EC2 instance's role from its metadata service, version 2.
type machine struct{ address string }

func newMachine(env Environment) (keyGiver, error) {
	if env.Get("AWS_EC2_METADATA_DISABLED") == "true" {
		return nil, errors.New("no keys: neither access_key, profile, environment nor container has any, and AWS_EC2_METADATA_DISABLED forbids asking the machine")
	}
	return &machine{cmp.Or(env.Get("AWS_EC2_METADATA_SERVICE_ENDPOINT"), "http://169.254.169.254")}, nil
}

func (m *machine) secrets() []string { return nil }

func (m *machine) keys(ctx context.Context, net Network) (k Keys, end time.Time, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, m.address+"/latest/api/token", nil)
	if err != nil {
		return k, end, errors.New("AWS_EC2_METADATA_SERVICE_ENDPOINT is not a URL")
	}
	req.Header.Set("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "300")
	resp, refused := call(net, req, true, nil)
	if refused != nil {
		return k, end, refused
	}
	token := strings.TrimSpace(string(resp.Body)) // substitutes for the metadata service end their texts with a newline
	list := m.address + "/latest/meta-data/iam/security-credentials/"
	ask := func(from string) ([]byte, error) {
		req, err := get(ctx, from, "X-Aws-Ec2-Metadata-Token", token)
		if err != nil {
			return nil, err
		}
		resp, refused := call(net, req, true, nil)
		if refused != nil {
			if refused.Status == http.StatusNotFound {
				refused.Text = "this machine has no role: give it an instance profile"
			}
			return nil, refused
		}
		return resp.Body, nil
	}
	name, err := ask(list)
	if err != nil {
		return k, end, err
	}
	body, err := ask(list + url.PathEscape(strings.TrimSpace(string(name))))
	if err != nil {
		return k, end, err
	}
	return jsonKeys(body, list)
}

// jsonKeys reads keys in the format of the metadata service and of the container's endpoint.
func jsonKeys(body []byte, from string) (Keys, time.Time, error) {
	var k struct {
		Code, Message          string
		AccessKeyID            string `json:"AccessKeyId"`
		SecretAccessKey, Token string
		Expiration             time.Time
	}
	if err := json.Unmarshal(body, &k); err != nil || k.AccessKeyID == "" || k.SecretAccessKey == "" {
		text := "the answer has no keys"
		if k.Code != "" && k.Code != "Success" {
			text = fmt.Sprintf("%s: %s", k.Code, k.Message)
		}
		return Keys{}, time.Time{}, &Error{Place: from, Status: http.StatusOK, Text: text}
	}
	return Keys{ID: k.AccessKeyID, Secret: k.SecretAccessKey, Session: k.Token}, k.Expiration, nil
}

// container gets keys from the endpoint that ECS, or the identity agent of EKS, offers to a container.
type container struct {
	address string
	near    bool
	token   string // the value of Authorization; may be ""
}

// newContainer returns nil if the agent does not run in such a container.
func newContainer(env Environment, files Files) (keyGiver, error) {
	c := &container{token: env.Get("AWS_CONTAINER_AUTHORIZATION_TOKEN"), near: true}
	if path := env.Get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"); path != "" {
		c.address = "http://169.254.170.2" + path
	} else if c.address = env.Get("AWS_CONTAINER_CREDENTIALS_FULL_URI"); c.address == "" {
		return nil, nil //nolint:nilnil // no container
	}
	u, ok := endpoint(c.address)
	if !ok {
		return nil, errors.New("AWS_CONTAINER_CREDENTIALS_FULL_URI is neither https nor an address of this machine")
	}
	c.near = u.Scheme == "http"
	if file := env.Get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"); file != "" {
		var err error
		if c.token, err = files.Read(file); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *container) secrets() []string { return []string{c.token} }

func (c *container) keys(ctx context.Context, net Network) (Keys, time.Time, error) {
	header := ""
	if c.token != "" {
		header = "Authorization"
	}
	req, err := get(ctx, c.address, header, c.token)
	if err != nil {
		return Keys{}, time.Time{}, err
	}
	resp, refused := call(net, req, c.near, nil)
	if refused != nil {
		return Keys{}, time.Time{}, refused
	}
	return jsonKeys(resp.Body, place(req.URL))
}
