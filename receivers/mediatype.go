package receivers

import (
	"errors"
	"mime"
	"net/http"
)

// MediaType is the type and the parameters that a Content-Type names. The type is "" if the
// header is not there, and if it cannot be read. Parameters that cannot be read are left out.
func MediaType(contentType string) (kind string, params map[string]string) {
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) {
		return "", nil
	}
	return kind, params
}

// CheckText refuses a request whose Content-Type says that its body is no text of metrics. A
// missing type is taken, and so are those that a client sends which does not know better: curl's
// --data-binary says application/x-www-form-urlencoded, many others application/octet-stream.
func CheckText(contentType string) error {
	if contentType == "" {
		return nil
	}
	switch kind, _ := MediaType(contentType); kind {
	case "text/plain", "application/openmetrics-text", "application/x-www-form-urlencoded", "application/octet-stream":
		return nil
	}
	return Refuse(Unsupported, http.StatusUnsupportedMediaType,
		"the Content-Type %q is no text of metrics: send text/plain, application/openmetrics-text, or no type at all", cut(contentType))
}
