package client

// Kind is what a failed request blames: a part of the way to the receiver, or the receiver itself.
type Kind uint8

// The kinds. Their names are part of the status JSON.
const (
	NoFailure         Kind = iota
	FileMissing            // a credential file does not exist
	FileForbidden          // the agent may not read a credential file
	FileUnusable           // a credential file has contents that cannot be used, or is no file
	Token                  // the endpoint of oauth2 or of a cloud gave no token
	Proxy                  // the proxy refused, or could not be used
	UnknownHost            // DNS has no such name
	NameServer             // the DNS servers give no answer
	ConnectionRefused      // nothing listens on the port
	NoRoute                // no way to the address
	ConnectTimeout         // the connection is not answered
	Timeout                // the request is not answered in time
	Cut                    // the connection ended without an answer
	Network                // no answer for another reason
	SchemeTLS              // url: says http://, the port speaks TLS
	SchemePlain            // url: says https://, the port does not speak TLS
	Expired                // the receiver's certificate has expired
	NotYetValid            // the receiver's certificate is not valid yet
	UnknownAuthority       // the receiver's certificate is of an authority that is not trusted
	WrongName              // the receiver's certificate has other names
	ServerCertificate      // the receiver's certificate cannot be verified for another reason
	ClientCertificate      // the receiver refuses the client certificate, or requires one
	TLSVersion             // the receiver speaks other versions of TLS
	Handshake              // the TLS handshake failed for another reason
	Credentials            // 401, 407
	Forbidden              // 403
	ReceiverOff            // 404 of a Prometheus whose receiver is disabled
	Path                   // 404: the URL's path is not a write path
	Method                 // 405, 101: the URL's path takes no writes
	Page                   // a web page: a portal or a login
	Redirect               // 3xx
	TooLarge               // 413
	Refused                // 400, 409, 422
	Message                // 415: not this version of remote write
	RateLimit              // 429
	SeriesLimit            // 429, for the number of series
	ServerError            // 5xx
	Unavailable            // 503
	Gateway                // 502, 504: a proxy in front of the receiver gets no answer from it
	ClockSkew              // this host's clock is wrong, so the receiver refuses the time of a signature
	AwaitsClock            // samples are ahead of the receiver's clock and wait for it
	OtherStatus            // any other unsuccessful status
	numKinds
)

// row describes a kind. In words and remedy, {addr}, {host} and {port} stand for those of the URL, {detail} for what is
// particular to the failure, {try} for a remedy that depends on the entry (see tries), and {paths} for common write paths.
type row struct {
	name      string
	permanent bool // waiting cannot help: a person must act
	words     string
	remedy    string
}

const (
	permanent = true
	passing   = false
)

// row returns the table's row of the kind: the one place where a failure gets its name, severity, words and remedy.
func (k Kind) row() row {
	return [numKinds]row{
		NoFailure:     {},
		FileMissing:   {"file_missing", permanent, "a credential file does not exist: {detail}", "create the file; no reload is needed"},
		FileForbidden: {"file_forbidden", permanent, "a credential file cannot be read: {detail}", "make the agent's user the owner of the file: chown"},
		FileUnusable:  {"file_unusable", permanent, "the credentials cannot be used: {detail}", "correct the credential files that the error names; no reload is needed"},
		Token:         {"token", passing, "no access token: {detail}", "{try}"},
		Proxy:         {"proxy", passing, "{detail}", "look at proxy_url, its user, and the rules of the proxy"},

		UnknownHost: {"unknown_host", permanent, "no such host: DNS has no name {host}",
			"correct the host in url:, or add the name to DNS; /etc/resolv.conf names the servers that are asked"},
		NameServer: {"name_server", passing, "DNS gives no answer for {host}: {detail}", "look at the DNS servers in /etc/resolv.conf, and at the network to them"},
		ConnectionRefused: {"connection_refused", passing, "connection refused by {addr}",
			"start the receiver, or correct the host and port in its url; a firewall may also refuse port {port}"},
		NoRoute: {"no_route", passing, "no route to {addr}", "look at this host's network (ip route get {host}), and at the routers and firewalls on the way"},
		ConnectTimeout: {"connect_timeout", passing, "{addr} does not answer the connection",
			"look whether {host} is up, and whether a firewall drops packets to port {port}"},
		Timeout: {"timeout", passing, "{addr} gives {detail}", "look at the receiver's load and log, and at the proxies in front of it"},
		Cut:     {"connection_cut", passing, "{addr} closed the connection without an answer ({detail})", "{try}"},
		Network: {"network", passing, "no HTTP answer from {addr}: {detail}", "look whether an HTTP server listens at the host and port in url:, and at its log"},

		SchemeTLS:        {"scheme_tls", permanent, "{addr} speaks TLS, but url: says http://", "use https:// in url:"},
		SchemePlain:      {"scheme_plain", permanent, "{addr} does not speak TLS, but url: says https://", "use http:// in url:, or the receiver's TLS port"},
		Expired:          {"certificate_expired", permanent, "the certificate of {addr} has expired: {detail}", "renew the receiver's certificate, or set this host's clock if that is wrong (chrony, systemd-timesyncd)"},
		NotYetValid:      {"certificate_not_yet_valid", permanent, "the certificate of {addr} is not valid yet: {detail}", "set this host's clock if it is behind (chrony, systemd-timesyncd); otherwise correct the receiver's certificate"},
		UnknownAuthority: {"unknown_authority", permanent, "the certificate of {addr} is not trusted: {detail}", "{try}"},
		WrongName:        {"certificate_name", permanent, "the certificate of {addr} is for other names: {detail}", "{try}"},
		ServerCertificate: {"server_certificate", permanent, "the certificate of {addr} cannot be verified: {detail}",
			"correct the receiver's certificate, or tls_config"},
		ClientCertificate: {"client_certificate", permanent, "the receiver refuses access: {detail}", "{try}"},
		TLSVersion: {"tls_version", permanent, "{addr} speaks only other versions of TLS: {detail}",
			"update the receiver, or change tls_config: min_version and max_version"},
		Handshake: {"handshake", permanent, "the TLS handshake with {addr} failed: {detail}", "if the receiver requires a client certificate, name it in tls_config: cert_file and key_file; otherwise look at min_version, and at the receiver's log"},

		Credentials: {"credentials", permanent, "the receiver refuses access: {detail}", "{try}"},
		Forbidden:   {"forbidden", permanent, "the receiver refuses access: {detail}", "{try}"},
		ReceiverOff: {"receiver_off", permanent, "the receiver is switched off: {detail}", "start that Prometheus with " + receiverFlag},
		Path:        {"path", permanent, "the receiver does not know the path of url: {detail}", "change the path of url: to the receiver's write path: {paths}"},
		Method:      {"method", permanent, "the path of url: takes no writes: {detail}", "change the path of url: to the receiver's write path: {paths}"},
		Page:        {"page", permanent, "{detail}", "{try}"},
		Redirect:    {"redirect", permanent, "the URL leads elsewhere: {detail}", "redirects are not followed, because they leak credentials: write the final URL, if it is your receiver's"},
		TooLarge: {"too_large", permanent, "the receiver, or a proxy in front of it, finds the request too large: {detail}",
			"raise the limit of the proxy (nginx: client_max_body_size), or the receiver's (VictoriaMetrics: -maxInsertRequestSize; Mimir: -distributor.max-recv-msg-size)"},
		Refused: {"refused", permanent, "the receiver refuses the samples: {detail}",
			"if the answer is not about samples, change the path of url: to the receiver's write path: {paths}; otherwise correct the series, or drop them with write_relabel_configs"},
		Message: {"message", permanent, "the receiver reads another version of remote write: {detail}", "if this receiver accepts only remote write 2.0, write protobuf_message: auto"},
		RateLimit: {"rate_limit", passing, "the receiver limits the rate: {detail}",
			"raise the limit of this tenant at the receiver (ingestion_rate), or send less: a longer scrape_interval, fewer series by write_relabel_configs"},
		SeriesLimit: {"series_limit", passing, "the receiver limits the number of series: {detail}",
			"raise the limit of series of this tenant at the receiver, or drop series with write_relabel_configs"},
		ServerError: {"server_error", passing, "the receiver fails: {detail}", "look at the receiver's log, disk and memory; delivery resumes by itself"},
		Unavailable: {"unavailable", passing, "the receiver takes no data now: {detail}",
			"look whether the receiver is starting, overloaded or without a healthy backend; delivery resumes by itself"},
		Gateway: {"gateway", passing, "the proxy gets no answer from the receiver: {detail}",
			"start the receiver behind that proxy, or correct the proxy's address of it; delivery resumes by itself"},
		ClockSkew:   {"clock_skew", permanent, "this host's clock is wrong: {detail}", "set this host's clock (chrony, systemd-timesyncd): the receiver refuses signatures that are more than 5 minutes off"},
		AwaitsClock: {"clock", permanent, "{detail}", "set whichever clock is wrong (chrony, systemd-timesyncd): the receiver's or this host's"},
		OtherStatus: {"other_status", permanent, "the receiver answers {detail}", "look at the receiver's log, and at the proxies and firewalls in front of it"},
	}[min(k, numKinds-1)]
}

// String returns the kind's name, "" for NoFailure.
func (k Kind) String() string { return k.row().name }

// receiverWords are the words of Prometheus' 404 when its receiver is disabled (web/api/v1, remoteWrite), and
// receiverFlag is the flag that enables it. Prometheus 2.42 names the flag of versions before 2.33 there.
const (
	receiverWords = "remote write receiver needs to be enabled"
	receiverFlag  = "--web.enable-remote-write-receiver"
)

// writePaths lists the write paths of common receivers.
const writePaths = "/api/v1/write (Prometheus, started with --web.enable-remote-write-receiver), " +
	"/api/v1/push (Cortex, Mimir), /api/v1/receive (Thanos)"
