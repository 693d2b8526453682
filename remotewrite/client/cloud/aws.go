package cloud

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sso"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/aws-sdk-go-v2/service/sts/types"
	"github.com/aws/smithy-go/logging"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"hwsagent/remotewrite/config"
)

// sigV4 gets keys by Amazon's library: those of the entry, the environment, a web identity, the profile (with SSO and
// credential_process), the container or the machine, in the library's order; then those of the entry's role.
type sigV4 struct{ *config.SigV4 }

// SigV4 returns the source of an entry's keys.
func SigV4(c *config.SigV4) Source { return sigV4{c} }

func (s sigV4) What() string { return "AWS keys" }

// Files returns the files that the library reads unless the entry has keys.
func (s sigV4) Files() []string {
	if s.AccessKey != "" {
		return nil
	}
	var names []string
	for _, f := range [2]struct{ variable, name string }{{"AWS_CONFIG_FILE", "config"}, {"AWS_SHARED_CREDENTIALS_FILE", "credentials"}} {
		switch home, err := os.UserHomeDir(); {
		case os.Getenv(f.variable) != "":
			names = append(names, os.Getenv(f.variable))
		case err == nil:
			names = append(names, filepath.Join(home, ".aws", f.name))
		}
	}
	if file := os.Getenv("AWS_WEB_IDENTITY_TOKEN_FILE"); file != "" {
		names = append(names, file)
	}
	return names
}

func (s sigV4) Get(ctx context.Context, client *http.Client) (Access, error) {
	c, err := awsconfig.LoadDefaultConfig(ctx, s.options(client)...)
	if err != nil {
		return Access{}, fmt.Errorf("sigv4: %w", err)
	}
	if c.Region == "" {
		return Access{}, errors.New("sigv4: no region: write region, or give AWS_REGION to the agent")
	}
	if s.RoleARN != "" {
		c.Credentials = stscreds.NewAssumeRoleProvider(sts.NewFromConfig(c), s.RoleARN, s.role)
	}
	got, err := c.Credentials.Retrieve(ctx)
	if err != nil {
		return Access{}, fmt.Errorf("sigv4: %w", err)
	}
	k := &Keys{ID: got.AccessKeyID, Secret: got.SecretAccessKey, Session: got.SessionToken, Region: c.Region, Service: s.ServiceName}
	if k.Service == "" {
		k.Service = "aps"
	}
	a := Access{Keys: k, Secrets: []string{k.Secret, k.Session}}
	if got.CanExpire {
		a.End = got.Expires
	}
	return a, nil
}

// options returns the entry's settings for the library. It makes one attempt: the caller tries again.
func (s sigV4) options(client *http.Client) []func(*awsconfig.LoadOptions) error {
	all := []func(*awsconfig.LoadOptions) error{
		awsconfig.WithLogger(logging.Nop{}),
		awsconfig.WithAPIOptions([]func(*middleware.Stack) error{by(client)}),
		awsconfig.WithRetryer(func() aws.Retryer { return aws.NopRetryer{} }),
		awsconfig.WithUseFIPSEndpoint(aws.FIPSEndpointStateDisabled),
	}
	if s.UseFIPSSTSEndpoint {
		all = append(all, awsconfig.WithUseFIPSEndpoint(aws.FIPSEndpointStateEnabled))
	}
	if s.AccessKey != "" {
		all = append(all, awsconfig.WithCredentialsProvider(credentials.NewStaticCredentialsProvider(s.AccessKey, string(s.SecretKey), "")))
	}
	if s.Region != "" {
		all = append(all, awsconfig.WithRegion(s.Region))
	}
	if s.Profile != "" {
		all = append(all, awsconfig.WithSharedConfigProfile(s.Profile))
	}
	return all
}

// by lets client carry the library's requests. The library accepts another client only where AWS_CA_BUNDLE is not set, and
// its own follows redirects and does not bound answers.
func by(client *http.Client) func(*middleware.Stack) error {
	send := func(ctx context.Context, in middleware.DeserializeInput, _ middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
		req, ok := in.Request.(*smithyhttp.Request)
		if !ok {
			return middleware.DeserializeOutput{}, middleware.Metadata{}, fmt.Errorf("not a request over HTTP: %T", in.Request)
		}
		resp, err := client.Do(req.Build(ctx)) //nolint:bodyclose // the library closes it
		if err != nil {
			return middleware.DeserializeOutput{}, middleware.Metadata{}, &smithyhttp.RequestSendError{Err: err}
		}
		return middleware.DeserializeOutput{RawResponse: &smithyhttp.Response{Response: resp}}, middleware.Metadata{}, nil
	}
	return func(stack *middleware.Stack) error {
		return errors.Join(
			stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("hwsagent: send", send), middleware.After),
			stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("hwsagent: check", complete), middleware.Before),
		)
	}
}

// complete makes an answer without keys an error. The library's providers dereference what such an answer lacks, in a
// goroutine of their own, and so end the process (aws-sdk-go-v2/credentials v1.20.3, stscreds and ssocreds).
func complete(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
	out, meta, err := next.HandleDeserialize(ctx, in)
	if err != nil {
		return out, meta, err
	}
	whole := func(c *types.Credentials) bool {
		return c != nil && c.AccessKeyId != nil && c.SecretAccessKey != nil && c.SessionToken != nil && c.Expiration != nil
	}
	ok := true
	switch r := out.Result.(type) {
	case *sts.AssumeRoleOutput:
		ok = whole(r.Credentials)
	case *sts.AssumeRoleWithWebIdentityOutput:
		ok = whole(r.Credentials)
	case *sso.GetRoleCredentialsOutput:
		ok = r.RoleCredentials != nil && r.RoleCredentials.AccessKeyId != nil && r.RoleCredentials.SecretAccessKey != nil
	}
	if !ok {
		return out, meta, errors.New("the answer has no keys")
	}
	return out, meta, nil
}

// role sets the options of the entry's role.
func (s sigV4) role(o *stscreds.AssumeRoleOptions) {
	o.RoleSessionName = s.SessionName
	if o.RoleSessionName == "" {
		o.RoleSessionName = "hwsagent"
	}
	if s.ExternalID != "" {
		o.ExternalID = aws.String(s.ExternalID)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Tags)) {
		o.Tags = append(o.Tags, types.Tag{Key: aws.String(name), Value: aws.String(s.Tags[name])})
	}
}
