package metrics

import "time"

// Reloaded counts a change of credential or certificate files.
func (m *Target) Reloaded(err error) {
	result := "ok"
	if err != nil {
		result = "failed"
	}
	m.reloads.WithLabelValues(result).Inc()
}

// SetExpiry shows when the earliest certificate of a role ends.
func (m *Target) SetExpiry(role string, t time.Time) {
	m.expiry.WithLabelValues(role).Set(float64(t.Unix()))
}

// SetExpiries shows when the certificates and the token of new credentials end, and removes
// the values of the previous ones. The receiver's certificate is not affected.
func (m *Target) SetExpiries(ends map[string]time.Time) {
	for _, role := range []string{"client", "ca", "oauth2_client", "oauth2_ca"} {
		if t, ok := ends[role]; ok {
			m.SetExpiry(role, t)
		} else {
			m.expiry.DeleteLabelValues(role)
		}
	}
	m.SetTokenEnd(ends["bearer"])
}

// SetTokenEnd shows when the token in use ends; a zero t means that there is no token, or that it has no known end.
func (m *Target) SetTokenEnd(t time.Time) {
	m.token.Reset()
	if !t.IsZero() {
		m.token.WithLabelValues().Set(float64(t.Unix()))
	}
}
