//go:build !linux

package receivers

import "errors"

// listenBeside is for systems that do not allow two sockets of one program on a port.
func listenBeside(*socket, string) (*socket, error) {
	return nil, errors.New("listen on another address of a port that the agent has: this system allows it after a restart only")
}
