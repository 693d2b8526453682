package config

import "github.com/prometheus/common/config"

// SigV4 is the sigv4 key: requests are signed for Amazon Web Services. Fields that are not set come from the environment,
// from the files of the AWS command line, or from the machine, in the order of Amazon's SDKs.
type SigV4 struct {
	Region             string            `yaml:"region,omitempty"`
	AccessKey          string            `yaml:"access_key,omitempty"` // a name, no secret
	SecretKey          config.Secret     `yaml:"secret_key,omitempty"`
	Profile            string            `yaml:"profile,omitempty"`
	RoleARN            string            `yaml:"role_arn,omitempty"` // a role to assume with the keys
	ExternalID         string            `yaml:"external_id,omitempty"`
	SessionName        string            `yaml:"session_name,omitempty"`
	Tags               map[string]string `yaml:"tags,omitempty"`
	UseFIPSSTSEndpoint bool              `yaml:"use_fips_sts_endpoint,omitempty"`
	ServiceName        string            `yaml:"service_name,omitempty"` // "": aps, Amazon Managed Prometheus
}

// AzureAD is the azuread key: tokens of Microsoft Entra ID. Exactly one way to log in is set.
type AzureAD struct {
	ManagedIdentity  *AzureManagedIdentity  `yaml:"managed_identity,omitempty"`
	WorkloadIdentity *AzureWorkloadIdentity `yaml:"workload_identity,omitempty"`
	OAuth            *AzureOAuth            `yaml:"oauth,omitempty"`
	SDK              *AzureSDK              `yaml:"sdk,omitempty"`
	Certificate      *AzureCertificate      `yaml:"certificate,omitempty"`
	Cloud            string                 `yaml:"cloud,omitempty"` // "": AzurePublic
	Scope            string                 `yaml:"scope,omitempty"` // "": that of Azure Monitor in the cloud
}

// AzureManagedIdentity is the identity of the virtual machine, the app, or the server managed by Azure Arc.
type AzureManagedIdentity struct {
	ClientID string `yaml:"client_id,omitempty"` // "": the one that the system assigned
}

// AzureWorkloadIdentity is the identity of a pod, proven by the token of its service account.
type AzureWorkloadIdentity struct {
	ClientID      string `yaml:"client_id,omitempty"`
	TenantID      string `yaml:"tenant_id,omitempty"`
	TokenFilePath string `yaml:"token_file_path,omitempty"` // "": from the environment
}

// AzureOAuth is an application with a secret.
type AzureOAuth struct {
	ClientID     string        `yaml:"client_id,omitempty"`
	ClientSecret config.Secret `yaml:"client_secret,omitempty"`
	TenantID     string        `yaml:"tenant_id,omitempty"`
}

// AzureSDK uses the credentials that the environment names: an application's secret or certificate, a workload
// identity, or else the machine's identity.
type AzureSDK struct {
	TenantID string `yaml:"tenant_id,omitempty"`
}

// AzureCertificate is an application with a certificate in PEM.
type AzureCertificate struct {
	ClientID             string        `yaml:"client_id,omitempty"`
	TenantID             string        `yaml:"tenant_id,omitempty"`
	CertificatePath      string        `yaml:"certificate_path,omitempty"`
	CertificateKeyPath   string        `yaml:"certificate_key_path,omitempty"` // "": the key is in the same file
	CertificatePassword  config.Secret `yaml:"certificate_password,omitempty"`
	SendCertificateChain bool          `yaml:"send_certificate_chain,omitempty"`
}

// The values of cloud.
const (
	AzurePublic     = "AzurePublic"
	AzureGovernment = "AzureGovernment"
	AzureChina      = "AzureChina"
)

// GoogleIAM is the google_iam key: tokens of Google's clouds.
type GoogleIAM struct {
	CredentialsFile string `yaml:"credentials_file,omitempty"` // "": from the environment, or else from the machine
}

// UsesCloud reports whether the entry has sigv4, azuread or google_iam.
func (c *Config) UsesCloud() bool { return c.SigV4 != nil || c.AzureAD != nil || c.GoogleIAM != nil }
