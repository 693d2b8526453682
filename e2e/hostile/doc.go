// Package hostile is a receiver of remote write that misbehaves on purpose, over real TCP and TLS, with HTTP/1.1 by
// hand and HTTP/2 by the frame: every class of status, redirects, requested pauses in every form, answers that never
// come, never end or make no sense, connections that break anywhere, certificates that must not be trusted, and
// programs that are not receivers at all.
//
// A [Server] behaves normally and stores the samples it accepts, until it plays a [Behaviour]. [Behaviours] returns
// them all, each with the expected reaction of a sender. The server supports both versions of the protocol.
//
// By hand: go run ./e2e/hostile/serve -list
package hostile
