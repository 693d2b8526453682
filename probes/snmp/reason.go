package snmp

import (
	"errors"
	"net"
	"syscall"

	"hwsagent/probes/devices"
)

// reasoned is an error with the reason why the device was not reached.
type reasoned struct {
	error
	reason devices.Reason
}

// Unwrap returns the error.
func (r *reasoned) Unwrap() error { return r.error }

// because attaches a reason to an error.
func because(why devices.Reason, err error) error { return &reasoned{err, why} }

// reasonOf returns why the device was not reached.
func reasonOf(err error) devices.Reason {
	var r *reasoned
	switch {
	case errors.As(err, &r):
		return r.reason
	case errors.Is(err, devices.ErrPace):
		return devices.Limit
	case isTimeout(err):
		return devices.NoAnswer
	}
	return devices.Protocol
}

// connectReason returns why there is no connection.
func connectReason(err error) devices.Reason {
	var name *net.DNSError
	switch {
	case errors.As(err, &name):
		return devices.Name
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ECONNRESET):
		return devices.Refused
	case isTimeout(err):
		return devices.NoAnswer
	}
	return devices.NoRoute
}
