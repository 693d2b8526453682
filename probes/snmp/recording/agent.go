package recording

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/gosnmp/gosnmp"
)

// Agent answers v1 and v2c requests on a UDP port of loopback, to any community.
type Agent struct {
	rec  *Recording
	conn net.PacketConn
	done chan struct{}
}

// Serve starts an agent; [Agent.Close] ends it.
func Serve(rec *Recording) (*Agent, error) {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open a port: %w", err)
	}
	a := &Agent{rec: rec, conn: conn, done: make(chan struct{})}
	go a.run()
	return a, nil
}

// Addr returns the agent's address, host:port.
func (a *Agent) Addr() string { return a.conn.LocalAddr().String() }

// Close ends the agent and waits for it.
func (a *Agent) Close() error {
	err := a.conn.Close()
	<-a.done
	return err
}

// maxReply is the largest answer in bytes; an agent omits the variables that do not fit (RFC 3416 section 4.2.3).
const maxReply = 60_000

func (a *Agent) run() {
	defer close(a.done)
	codec := &gosnmp.GoSNMP{Version: gosnmp.Version2c}
	buf := make([]byte, 65536)
	for {
		n, from, err := a.conn.ReadFrom(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		req, err := codec.SnmpDecodePacket(bytes.Clone(buf[:n]))
		if err != nil {
			continue
		}
		answer := a.rec.Answer(req)
		out, err := answer.MarshalMsg()
		for err == nil && len(out) > maxReply && len(answer.Variables) > 1 {
			answer.Variables = answer.Variables[:len(answer.Variables)/2]
			out, err = answer.MarshalMsg()
		}
		if err == nil {
			_, _ = a.conn.WriteTo(out, from) // a lost answer is a lost packet
		}
	}
}

// Answer answers a GET, GETNEXT or GETBULK by RFC 3416, or RFC 1157 for version 1.
func (r *Recording) Answer(req *gosnmp.SnmpPacket) *gosnmp.SnmpPacket {
	resp := &gosnmp.SnmpPacket{Version: req.Version, Community: req.Community, RequestID: req.RequestID, PDUType: gosnmp.GetResponse}
	for _, v := range req.Variables {
		at, err := parse(v.Name)
		if err != nil {
			resp.Error = gosnmp.GenErr
			return resp
		}
		i, found := slices.BinarySearchFunc(r.oids, at, slices.Compare[[]uint32])
		n := 1
		switch {
		case req.PDUType == gosnmp.GetRequest && !found:
			if req.Version == gosnmp.Version1 {
				resp.Error, resp.ErrorIndex, resp.Variables = gosnmp.NoSuchName, 1, req.Variables
				return resp
			}
			resp.Variables = append(resp.Variables, gosnmp.SnmpPDU{Name: v.Name, Type: gosnmp.NoSuchObject})
			continue
		case req.PDUType != gosnmp.GetRequest && found:
			i++
		}
		if req.PDUType == gosnmp.GetBulkRequest {
			n = int(req.MaxRepetitions)
		}
		for ; n > 0; n, i = n-1, i+1 {
			if i < len(r.vars) {
				resp.Variables = append(resp.Variables, r.vars[i])
				continue
			}
			if req.Version == gosnmp.Version1 {
				resp.Error, resp.ErrorIndex, resp.Variables = gosnmp.NoSuchName, 1, req.Variables
				return resp
			}
			resp.Variables = append(resp.Variables, gosnmp.SnmpPDU{Name: v.Name, Type: gosnmp.EndOfMibView})
			break
		}
	}
	return resp
}
