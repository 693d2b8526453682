// Package testnet provides the network for tests of remote write: servers in memory for
// synctest bubbles, a certificate authority, and a server that counts and refuses clients.
package testnet
