package receivers

import (
	"errors"
	"mime"
	"net/http"
)

// MediaType returns the type and the parameters of a Content-Type. The type is "" if the header is missing or cannot be
// parsed. Parameters that cannot be parsed are dropped.
func MediaType(contentType string) (kind string, params map[string]string) {
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) {
		return "", nil
	}
	return kind, params
}

// CheckText refuses a request whose Content-Type says that its body is not text with metrics. It accepts a missing
// type, and the default types of simple clients: curl's --data-binary sends application/x-www-form-urlencoded, many
// others application/octet-stream.
func CheckText(contentType string) error {
	if contentType == "" {
		return nil
	}
	switch kind, _ := MediaType(contentType); kind {
	case "text/plain", "application/openmetrics-text", "application/x-www-form-urlencoded", "application/octet-stream":
		return nil
	}
	return Refuse(Unsupported, http.StatusUnsupportedMediaType,
		"the Content-Type %q is not text with metrics: send text/plain, application/openmetrics-text, or no type at all", cut(contentType))
}
