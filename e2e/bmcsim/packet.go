package bmcsim

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1" // #nosec G505 -- cipher suite 3 allows nothing else
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"time"
)

// Addresses in messages (table 5-4).
const bmcAddress = 0x20

// suite is a cipher suite (table 22-20).
type suite struct {
	auth, integrity byte
	hash            func() hash.Hash
	size            int // bytes of RAKP 4's check and of each packet's
}

// suites are 17 and 3.
var suites = [...]*suite{{auth: 3, integrity: 4, hash: sha256.New, size: 16}, {auth: 1, integrity: 1, hash: sha1.New, size: 12}}

func (s *suite) sign(key []byte, parts ...[]byte) []byte {
	m := hmac.New(s.hash, key)
	for _, p := range parts {
		m.Write(p)
	}
	return m.Sum(nil)
}

// session is a session of a BMC, being opened or active.
type session struct {
	suite        *suite
	theirs, ours [4]byte // session IDs: the console's, the BMC's
	number       [16]byte
	console      [16]byte // the console's random number
	who          []byte   // role, length of the name, name
	privilege    byte
	active       bool
	signing      []byte
	encipher     cipher.Block
	sequence     uint32
	used         time.Time // time of its last packet
}

// activate derives the keys (sections 13.31, 13.32).
func (s *session) activate(key []byte) (err error) {
	s.signing = s.suite.sign(key, bytes.Repeat([]byte{1}, 20))
	s.encipher, err = aes.NewCipher(s.suite.sign(key, bytes.Repeat([]byte{2}, 20))[:16])
	s.active = err == nil
	return err
}

// header returns an RMCP header and a session header of RMCP+ (section 13.6).
func header(payload byte, id [4]byte, sequence uint32, size int) []byte {
	p := append([]byte{6, 0, 0xff, 7, 6, payload}, id[:]...)
	p = binary.LittleEndian.AppendUint32(p, sequence)
	return binary.LittleEndian.AppendUint16(p, uint16(size))
}

// plain returns a packet outside of a session.
func plain(payload byte, body []byte) []byte {
	return append(header(payload, [4]byte{}, 0, len(body)), body...)
}

// seal returns a packet of the session, encrypted and signed (sections 13.28, 13.29).
func (s *session) seal(message []byte) []byte {
	body := make([]byte, aes.BlockSize, aes.BlockSize+len(message)+aes.BlockSize)
	_, _ = rand.Read(body)
	body = append(body, message...)
	pads := byte(0)
	for ; (len(body)+1)%aes.BlockSize != 0; pads++ {
		body = append(body, pads+1)
	}
	body = append(body, pads)
	cipher.NewCBCEncrypter(s.encipher, body[:aes.BlockSize]).CryptBlocks(body[aes.BlockSize:], body[aes.BlockSize:])
	s.sequence++
	p := append(header(0xc0, s.theirs, s.sequence, len(body)), body...)
	fill := byte(0)
	for ; (len(p)-4+2)%4 != 0; fill++ {
		p = append(p, 0xff)
	}
	p = append(p, fill, 7)
	return append(p, s.suite.sign(s.signing, p[4:])[:s.suite.size]...)
}

// open returns the message in a packet of the session; nil if it is invalid.
func (s *session) open(packet, body []byte) []byte {
	end := len(packet) - s.suite.size
	if !s.active || end < 4 || !hmac.Equal(packet[end:], s.suite.sign(s.signing, packet[4:end])[:s.suite.size]) ||
		len(body) < 2*aes.BlockSize || len(body)%aes.BlockSize != 0 {
		return nil
	}
	text := make([]byte, len(body)-aes.BlockSize)
	cipher.NewCBCDecrypter(s.encipher, body[:aes.BlockSize]).CryptBlocks(text, body[aes.BlockSize:])
	pads := int(text[len(text)-1])
	if pads+1 > len(text) {
		return nil
	}
	return text[:len(text)-1-pads]
}

// request is a request of a message (figure 13-4).
type request struct {
	from, lun, netFn, sequence, command byte
	data                                []byte
}

func parseRequest(m []byte) (r request, ok bool) {
	if len(m) < 7 || checksum(m[:2]) != m[2] || checksum(m[3:len(m)-1]) != m[len(m)-1] || m[0] != bmcAddress {
		return r, false
	}
	return request{from: m[3], lun: m[1] & 3, netFn: m[1] >> 2, sequence: m[4], command: m[5], data: m[6 : len(m)-1]}, true
}

// answer returns the message that answers the request.
func (r *request) answer(code byte, data []byte) []byte {
	m := []byte{r.from, (r.netFn|1)<<2 | r.lun, 0, bmcAddress, r.sequence, r.command, code}
	m[2] = checksum(m[:2])
	m = append(m, data...)
	return append(m, checksum(m[3:]))
}

// checksum returns the byte that makes the sum of all bytes 0 modulo 256.
func checksum(b []byte) (sum byte) {
	for _, v := range b {
		sum -= v
	}
	return sum
}
