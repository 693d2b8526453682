// Package hostile is a receiver of remote write that misbehaves on purpose, over real TCP
// and TLS, with HTTP/1.1 by hand and HTTP/2 by the frame: every class of status,
// redirects, waits that are asked for in every form, answers that do not come, do not end
// or make no sense, connections that break anywhere, certificates that are not to be
// trusted, and programs that are no receivers at all.
//
// A [Server] is well until it is told to play a [Behaviour], and stores what it takes.
// [Behaviours] are all there are, each with what a sender should make of it. Both versions
// of the protocol are understood.
//
// By hand: go run ./e2e/hostile/serve -list
package hostile
