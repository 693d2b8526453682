package httpbound

import "net/http"

// CloseAfterChunked ends a connection of HTTP/1.1 after each request whose body is in chunks. A request may also have a
// Content-Length; net/http then follows the chunks and drops the other, so that a handler cannot see it, while a proxy in
// front may have followed the length: what comes next on the connection could be part of another client's request. RFC
// 9112, section 6.1, asks a server to close the connection after such a request.
func CloseAfterChunked(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor == 1 && len(r.TransferEncoding) > 0 {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}
