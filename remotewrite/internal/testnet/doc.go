// Package testnet has what tests of remote write need of a network: servers in memory for
// synctest bubbles, a certificate authority, and a server that counts and refuses clients.
package testnet
