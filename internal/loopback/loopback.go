// Package loopback decides which addresses only this host can reach. Listeners, unencrypted requests and the check of a
// request's Host header all use this one definition.
package loopback

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// Host reports whether a host, without its port, certainly means this host: a loopback address, or localhost and the names
// below it, which RFC 6761 (section 6.3) reserves for such addresses. Case and the brackets of an IPv6 address do not matter.
// It does not resolve names.
func Host(host string) bool {
	host = strings.ToLower(strings.Trim(host, "[]"))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// Address is [Host] for host:port. It returns false for a text without a port.
func Address(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && Host(host)
}

// Only refuses requests whose Host is not this host, with 421. A page on another site can make its own name resolve to
// 127.0.0.1 (DNS rebinding), and so make a browser read and write here, but it cannot make the browser send another Host.
func Only(next http.Handler) http.Handler {
	const most = 100 // bytes of a refused host that the answer repeats
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		if !Host(host) {
			http.Error(w, fmt.Sprintf("this listener answers to localhost and loopback addresses only, not to the host %q", host[:min(len(host), most)]),
				http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}
