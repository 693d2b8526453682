package ipmi

import (
	"context"
	"crypto/aes"
	"crypto/hmac"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"hwsagent/probes/devices"
)

// completion is the code of an answer to a command that was not executed (table 5-2).
type completion byte

func (c completion) Error() string {
	if text := completions[c]; text != "" {
		return fmt.Sprintf("the BMC answers %#02x: %s", byte(c), text)
	}
	return fmt.Sprintf("the BMC answers %#02x", byte(c))
}

// Completion codes with special handling.
const (
	busy             = completion(0xc0)
	invalidCommand   = completion(0xc1)
	tookTooLong      = completion(0xc3)
	reservationLost  = completion(0xc5)
	tooMany          = completion(0xc8) // more bytes than allowed
	cannotReturn     = completion(0xca) // so many bytes
	notPresent       = completion(0xcb)
	recordsChange    = completion(0xd0)
	firmwareUpdate   = completion(0xd1)
	starting         = completion(0xd2)
	notEnoughRight   = completion(0xd4)
	privilegeOverMax = completion(0x81) // of Set Session Privilege Level
)

// passes reports whether the refusal is temporary, so that it does not tell whether the BMC has the requested item.
func (c completion) passes() bool {
	switch c {
	case busy, tookTooLong, recordsChange, firmwareUpdate, starting:
		return true
	}
	return false
}

// isNone reports whether an error is a refusal that means that the BMC lacks the requested item.
func isNone(err error) bool {
	var refused completion
	return errors.As(err, &refused) && !refused.passes()
}

var completions = map[completion]string{
	busy: "it is busy", invalidCommand: "it does not know the command", 0xc2: "it does not know the command at this LUN", tookTooLong: "it took too long internally",
	reservationLost: "its records are being read by somebody else", 0xc7: "the request has a wrong length", tooMany: "the request has too many bytes", 0xc9: "a parameter is out of range",
	cannotReturn: "it cannot return as many bytes", notPresent: "there is no such sensor or record", 0xcc: "a field of the request is invalid", 0xcd: "the command is illegal for this sensor",
	0xce: "it cannot answer", recordsChange: "its records are being changed", firmwareUpdate: "its firmware is being updated", starting: "it is starting", 0xd3: "what it should ask does not answer",
	notEnoughRight: "the session's privilege is too low", 0xd5: "it cannot do this in its present state",
}

// link is a connection to a BMC. It is for one goroutine.
type link interface {
	// ask sends one command to the BMC and returns the data of its answer, or a [completion] if the BMC refuses.
	ask(ctx context.Context, lun, netFn, command byte, data ...byte) ([]byte, error)
	close(ctx context.Context)
}

// lan is an RMCP+ session.
type lan struct {
	conn     net.Conn
	patience time.Duration // wait for an answer to one packet
	retries  int
	pace     *devices.Pace
	keys     *keys
	sequence byte
	buffer   [2048]byte // larger than any packet: payloads have 16-bit lengths, but BMCs send messages of at most 272 bytes
}

// login holds the parameters for opening a session.
type login struct {
	address   string
	user      string
	password  string
	privilege byte
	patience  time.Duration
	retries   int
	pace      *devices.Pace // of packets
}

// errSilent means that a packet and its retries remained unanswered.
var errSilent = errors.New("no answer")

// stage is an error at one step of the login.
type stage struct {
	step   string
	status byte // of RMCP+ (table 13-15); 0 if only err applies
	err    error
}

func (e *stage) Error() string {
	if e.status != 0 {
		return fmt.Sprintf("%s: the BMC refuses with status %#02x", e.step, e.status)
	}
	return fmt.Sprintf("%s: %v", e.step, e.err)
}

func (e *stage) Unwrap() error { return e.err }

// open opens a session with that cipher suite (section 13.15).
func (l *login) open(ctx context.Context, s *suite) (*lan, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "udp", l.address)
	if err != nil {
		return nil, fmt.Errorf("open a socket: %w", err)
	}
	c := &lan{conn: conn, patience: l.patience, retries: l.retries, pace: l.pace}
	if err := c.begin(ctx, l, s); err != nil {
		_ = conn.Close()
		return nil, err
	}
	if _, err := c.ask(ctx, 0, netApp, setPrivilege, l.privilege); err != nil {
		c.close(ctx)
		return nil, &stage{step: "set the privilege", err: err}
	}
	return c, nil
}

// begin derives the keys, by Open Session and RAKP messages 1 to 4 (sections 13.17 to 13.23).
func (c *lan) begin(ctx context.Context, l *login, s *suite) error {
	var random [20]byte // our session ID, which must not be 0, and our random number
	_, _ = rand.Read(random[:])
	ours, number := random[:4], random[4:]
	ours[0] |= 1
	algorithm := func(kind, alg byte) []byte { return []byte{kind, 0, 0, 8, alg, 0, 0, 0} }
	request := append([]byte{0, 0, 0, 0}, ours...)
	request = append(request, algorithm(0, s.auth)...)
	request = append(request, algorithm(1, s.integrity)...)
	request = append(request, algorithm(2, confidentiality)...)
	opened, err := c.handshake(ctx, "open a session", payloadOpenRequest, payloadOpenResponse, request, ours, 36)
	if err != nil {
		return err
	}
	if opened[16] != s.auth || opened[24] != s.integrity || opened[32] != confidentiality {
		return &stage{step: "open a session", err: errors.New("the BMC chose other algorithms than were offered")}
	}
	theirs := append([]byte(nil), opened[8:12]...)
	// The BMC now holds a session for us, which can be closed only after the login.
	ctx, cancel := outlive(ctx)
	defer cancel()
	role := []byte{0x10 | l.privilege, byte(len(l.user))} // 10h: look the user up by name only
	who := append(append([]byte(nil), role...), l.user...)
	request = append([]byte{0, 0, 0, 0}, theirs...)
	request = append(append(request, number...), role[0], 0, 0, role[1])
	second, err := c.handshake(ctx, "say who asks", payloadRAKP1, payloadRAKP2, append(request, l.user...), ours, 40+s.proof)
	if err != nil {
		return err
	}
	password := []byte(l.password)
	answered, guid := append([]byte(nil), second[8:24]...), append([]byte(nil), second[24:40]...)
	if !hmac.Equal(second[40:40+s.proof], s.sign(password, ours, theirs, number, answered, guid, who)) {
		return &stage{step: "say who asks", err: errPassword}
	}
	request = append([]byte{0, 0, 0, 0}, theirs...)
	request = append(request, s.sign(password, answered, ours, who)...)
	fourth, err := c.handshake(ctx, "prove the password", payloadRAKP3, payloadRAKP4, request, ours, 8+s.check)
	if err != nil {
		return err
	}
	integrityKey := s.sign(password, number, answered, who)
	if !hmac.Equal(fourth[8:8+s.check], s.sign(integrityKey, number, theirs, guid)[:s.check]) {
		return &stage{step: "prove the password", err: errPassword}
	}
	c.keys, err = newKeys(s, integrityKey)
	if err == nil {
		c.keys.ours, c.keys.theirs = binary.LittleEndian.Uint32(ours), binary.LittleEndian.Uint32(theirs)
	}
	return err
}

// errPassword means that the two sides use different passwords.
var errPassword = errors.New("its proof does not fit the password")

// handshake sends a message of the login, and returns the body of its answer, which has at least size bytes.
func (c *lan) handshake(ctx context.Context, step string, payload, answer byte, body, ours []byte, size int) ([]byte, error) {
	var status byte
	got, err := c.exchange(ctx, func() []byte { return plain(payload, body) }, func(packet []byte) ([]byte, bool) {
		b, err := openPlain(packet, answer)
		if err != nil || len(b) < 2 || b[0] != body[0] {
			return nil, false
		}
		if status = b[1]; status != 0 {
			return b, true
		}
		return b, len(b) >= size && string(b[4:8]) == string(ours)
	})
	switch {
	case err != nil:
		return nil, &stage{step: step, err: err}
	case status != 0:
		return nil, &stage{step: step, status: status}
	}
	return got, nil
}

// ask implements link. It ignores packets that do not answer this request: late, duplicate or malformed ones.
func (c *lan) ask(ctx context.Context, lun, netFn, command byte, data ...byte) ([]byte, error) {
	c.sequence = (c.sequence + 1) & 0x3f
	sequence, request := c.sequence, message(lun, netFn, command, c.sequence, data)
	var code byte
	answer, err := c.exchange(ctx, func() []byte {
		var random [aes.BlockSize]byte
		_, _ = rand.Read(random[:])
		return c.keys.seal(request, random)
	}, func(packet []byte) (data []byte, ok bool) {
		m, err := c.keys.open(packet)
		if err != nil {
			return nil, false
		}
		code, data, ok = parseMessage(m, netFn, command, sequence)
		return data, ok
	})
	if err == nil && code != 0 {
		err = completion(code)
	}
	return answer, err
}

// exchange sends a packet, repeatedly if there is no answer, until take accepts a packet.
func (c *lan) exchange(ctx context.Context, packet func() []byte, take func([]byte) ([]byte, bool)) ([]byte, error) {
	stop := context.AfterFunc(ctx, func() { _ = c.conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	for range c.retries + 1 {
		if err := c.pace.Wait(ctx); err != nil {
			return nil, err
		}
		if err := c.conn.SetDeadline(time.Now().Add(c.patience)); err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if _, err := c.conn.Write(packet()); errors.Is(err, os.ErrDeadlineExceeded) {
			continue // this machine was too busy to send it in time
		} else if err != nil {
			return nil, fmt.Errorf("send: %w", err)
		}
		for {
			n, err := c.conn.Read(c.buffer[:])
			if errors.Is(err, os.ErrDeadlineExceeded) {
				break
			} else if errors.Is(err, syscall.ECONNREFUSED) {
				return nil, fmt.Errorf("%w: nothing listens there", syscall.ECONNREFUSED)
			} else if err != nil {
				return nil, fmt.Errorf("receive: %w", err)
			}
			if data, ok := take(c.buffer[:n]); ok {
				return append([]byte(nil), data...), nil
			}
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return nil, errSilent
}

// closing is how long a BMC may take to close a session. It times out by itself after a minute.
const closing = time.Second

// outlive returns a context that ends shortly after ctx does.
func outlive(ctx context.Context) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	switch {
	case ctx.Err() != nil:
		end = time.Now()
	case !ok:
		return context.WithCancel(context.WithoutCancel(ctx))
	}
	return context.WithDeadline(context.WithoutCancel(ctx), end.Add(closing))
}

// close implements link. BMCs have few sessions, so it closes the session even after the round's deadline.
func (c *lan) close(ctx context.Context) {
	ctx, cancel := outlive(ctx)
	defer cancel()
	c.retries = 0
	_, _ = c.ask(ctx, 0, netApp, closeSession, binary.LittleEndian.AppendUint32(nil, c.keys.theirs)...)
	_ = c.conn.Close()
}
