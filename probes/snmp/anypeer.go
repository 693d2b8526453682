package snmp

import (
	"context"
	"fmt"
	"net"

	"github.com/gosnmp/gosnmp"
)

// anyPeer is a UDP socket that sends to one address and accepts answers from any, for devices
// with several addresses that answer from another one. The request ID and, in v3, the
// signature decide whether an answer belongs to the request.
type anyPeer struct {
	*net.UDPConn
	to *net.UDPAddr
}

// Write sends one packet.
func (c *anyPeer) Write(b []byte) (int, error) { return c.WriteToUDP(b, c.to) }

// Read receives one packet.
func (c *anyPeer) Read(b []byte) (int, error) {
	n, _, err := c.ReadFromUDP(b)
	return n, err
}

// unconnect replaces the socket of g, which is connected to a UDP address.
func unconnect(g *gosnmp.GoSNMP) error {
	to, ok := g.Conn.RemoteAddr().(*net.UDPAddr)
	if !ok {
		return fmt.Errorf("%s is no UDP address", g.Conn.RemoteAddr())
	}
	local := ":0"
	if to.IP.IsLoopback() { // a device on this machine answers from an address of this machine
		local = net.JoinHostPort(to.IP.String(), "0")
	}
	c, err := new(net.ListenConfig).ListenPacket(context.Background(), "udp", local)
	if err != nil {
		return err
	}
	_ = g.Conn.Close()
	g.Conn = &anyPeer{c.(*net.UDPConn), to}
	return nil
}
