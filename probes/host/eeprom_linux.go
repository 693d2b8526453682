package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// ethtool reads the memory of transceivers from the kernel by generic netlink: Linux'
// Documentation/networking/ethtool-netlink.rst, MODULE_EEPROM_GET, since Linux 5.13, and
// Documentation/userspace-api/netlink. It is for one goroutine.
type ethtool struct {
	socket   int
	family   uint16 // the message type of the family ethtool
	sequence uint32
}

// Attributes of ETHTOOL_MSG_MODULE_EEPROM_GET (include/uapi/linux/ethtool_netlink.h).
const (
	eepromHeader  = 1
	eepromOffset  = 2
	eepromLength  = 3
	eepromPage    = 4
	eepromAddress = 6
	eepromData    = 7
)

// openEthtool opens a socket and requests the family's number. Each answer may take up to patience.
func openEthtool(patience time.Duration) (*ethtool, error) {
	socket, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_GENERIC)
	if err != nil {
		return nil, fmt.Errorf("open a netlink socket: %w", err)
	}
	e := &ethtool{socket: socket, family: unix.GENL_ID_CTRL}
	limit := unix.NsecToTimeval(patience.Nanoseconds())
	if err := unix.SetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit); err != nil {
		e.close()
		return nil, fmt.Errorf("set the time of a netlink socket: %w", err)
	}
	answer, err := e.ask(unix.CTRL_CMD_GETFAMILY, netlinkAttr(nil, unix.CTRL_ATTR_FAMILY_NAME, append([]byte(unix.ETHTOOL_GENL_NAME), 0)))
	if err == nil && len(answer[unix.CTRL_ATTR_FAMILY_ID]) < 2 {
		err = errNetlink
	}
	if err != nil {
		e.close()
		return nil, fmt.Errorf("ask for the netlink family ethtool: %w", err)
	}
	e.family = binary.NativeEndian.Uint16(answer[unix.CTRL_ATTR_FAMILY_ID])
	return e, nil
}

func (e *ethtool) close() { _ = unix.Close(e.socket) }

// read reads a part of the memory of the transceiver in a network device.
func (e *ethtool) read(device string, address, page byte, offset, length int) ([]byte, error) {
	number := func(v int) []byte { return binary.NativeEndian.AppendUint32(nil, uint32(v)) } // #nosec G115 -- 128 at most
	m := netlinkAttr(nil, eepromHeader|unix.NLA_F_NESTED, netlinkAttr(nil, unix.ETHTOOL_A_HEADER_DEV_NAME, append([]byte(device), 0)))
	m = netlinkAttr(netlinkAttr(m, eepromOffset, number(offset)), eepromLength, number(length))
	m = netlinkAttr(netlinkAttr(m, eepromPage, []byte{page}), eepromAddress, []byte{address})
	answer, err := e.ask(unix.ETHTOOL_MSG_MODULE_EEPROM_GET, m)
	if err != nil {
		return nil, err
	}
	return answer[eepromData], nil
}

var errNetlink = errors.New("an answer of netlink that is not as it should be")

// ask sends a command with its attributes and returns the attributes of the answer.
func (e *ethtool) ask(command byte, attributes []byte) (map[uint16][]byte, error) {
	e.sequence++
	m := make([]byte, unix.SizeofNlMsghdr+unix.GENL_HDRLEN, unix.SizeofNlMsghdr+unix.GENL_HDRLEN+len(attributes))
	m = append(m, attributes...)
	binary.NativeEndian.PutUint32(m, uint32(len(m))) // #nosec G115 -- a few dozen
	binary.NativeEndian.PutUint16(m[4:], e.family)
	binary.NativeEndian.PutUint16(m[6:], unix.NLM_F_REQUEST)
	binary.NativeEndian.PutUint32(m[8:], e.sequence)
	m[unix.SizeofNlMsghdr], m[unix.SizeofNlMsghdr+1] = command, 1
	if err := unix.Sendto(e.socket, m, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, fmt.Errorf("send: %w", err)
	}
	buf := make([]byte, 8192)
	for {
		n, from, err := unix.Recvfrom(e.socket, buf, 0)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			return nil, errors.New("the kernel does not answer")
		case err != nil:
			return nil, fmt.Errorf("receive: %w", err)
		}
		if kernel, ok := from.(*unix.SockaddrNetlink); !ok || kernel.Pid != 0 {
			continue // another program's
		}
		answer, ours, err := parseNetlink(buf[:n], e.sequence)
		if ours {
			return answer, err
		}
	}
}

// netlinkAttr appends an attribute.
func netlinkAttr(b []byte, kind int, value []byte) []byte {
	b = binary.NativeEndian.AppendUint16(b, uint16(unix.SizeofNlAttr+len(value))) // #nosec G115 -- a few dozen
	b = append(binary.NativeEndian.AppendUint16(b, uint16(kind)), value...)       // #nosec G115 -- a constant
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

// parseNetlink parses the first message with that sequence number: its attributes, or its error.
func parseNetlink(b []byte, sequence uint32) (attributes map[uint16][]byte, ours bool, err error) {
	for len(b) >= unix.SizeofNlMsghdr {
		size := int(binary.NativeEndian.Uint32(b))
		if size < unix.SizeofNlMsghdr || size > len(b) {
			return nil, true, errNetlink
		}
		kind, own, body := binary.NativeEndian.Uint16(b[4:]), binary.NativeEndian.Uint32(b[8:]) == sequence, b[unix.SizeofNlMsghdr:size]
		b = b[min((size+3)&^3, len(b)):]
		switch {
		case !own:
			continue
		case kind == unix.NLMSG_ERROR && len(body) >= 4:
			code := int32(binary.NativeEndian.Uint32(body)) // #nosec G115 -- twos' complement
			if code >= 0 {
				return nil, true, errNetlink // an acknowledgement that was not requested
			}
			return nil, true, unix.Errno(-code)
		case len(body) < unix.GENL_HDRLEN:
			return nil, true, errNetlink
		}
		return netlinkAttrs(body[unix.GENL_HDRLEN:]), true, nil
	}
	return nil, false, nil
}

// netlinkAttrs returns the complete attributes by kind.
func netlinkAttrs(b []byte) map[uint16][]byte {
	all := make(map[uint16][]byte)
	for len(b) >= unix.SizeofNlAttr {
		size := int(binary.NativeEndian.Uint16(b))
		if size < unix.SizeofNlAttr || size > len(b) {
			break
		}
		all[binary.NativeEndian.Uint16(b[2:])&^(unix.NLA_F_NESTED|unix.NLA_F_NET_BYTEORDER)] = b[unix.SizeofNlAttr:size]
		b = b[min((size+3)&^3, len(b)):]
	}
	return all
}
