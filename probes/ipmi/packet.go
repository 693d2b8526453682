package ipmi

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha1" // #nosec G505 -- cipher suite 3 allows nothing else
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash"
)

// suite is a cipher suite (table 22-20): the algorithms for authentication, integrity and encryption.
type suite struct {
	id                  int
	auth, integrity     byte // algorithm numbers of tables 13-17 and 13-18
	hash                func() hash.Hash
	proof, check, trail int // code lengths in bytes: of RAKP 2 and 3, of RAKP 4, and of each packet
}

// confidentiality is AES-CBC-128 (table 13-19), which both suites have.
const confidentiality = 1

var (
	suite17 = &suite{id: 17, auth: 3, integrity: 4, hash: sha256.New, proof: 32, check: 16, trail: 16}
	suite3  = &suite{id: 3, auth: 1, integrity: 1, hash: sha1.New, proof: 20, check: 12, trail: 12}
)

// Payload types (table 13-16).
const (
	payloadIPMI         = 0x00
	payloadOpenRequest  = 0x10
	payloadOpenResponse = 0x11
	payloadRAKP1        = 0x12
	payloadRAKP2        = 0x13
	payloadRAKP3        = 0x14
	payloadRAKP4        = 0x15
	encrypted           = 0x80
	authenticated       = 0x40
)

// rmcp is the RMCP header of IPMI messages (table 13-1): version 6, no acknowledgement, class IPMI.
var rmcp = []byte{6, 0, 0xff, 7}

const (
	authRMCPPlus  = 6  // the authentication type of RMCP+ (table 13-8)
	sessionHeader = 12 // bytes of the session header behind RMCP's
	nextHeader    = 7  // in the session trailer; reserved
)

var errPacket = errors.New("a packet that is not as it should be")

// sign returns the HMAC of all parts.
func (s *suite) sign(key []byte, parts ...[]byte) []byte {
	m := hmac.New(s.hash, key)
	for _, p := range parts {
		m.Write(p)
	}
	return m.Sum(nil)
}

// keys are the keys and IDs of an active session (section 13.31).
type keys struct {
	suite    *suite
	signing  []byte // K1
	encipher cipher.Block
	ours     uint32 // our session ID
	theirs   uint32 // the BMC's
	sequence uint32 // of the last packet sent
}

// newKeys derives K1 and K2 of the session integrity key (section 13.32).
func newKeys(s *suite, integrityKey []byte) (*keys, error) {
	block, err := aes.NewCipher(s.sign(integrityKey, bytes.Repeat([]byte{2}, 20))[:16])
	return &keys{suite: s, signing: s.sign(integrityKey, bytes.Repeat([]byte{1}, 20)), encipher: block}, err
}

// plain builds a packet outside of a session.
func plain(payload byte, body []byte) []byte {
	p := append(bytes.Clone(rmcp), authRMCPPlus, payload, 0, 0, 0, 0, 0, 0, 0, 0)
	return append(binary.LittleEndian.AppendUint16(p, uint16(len(body))), body...)
}

// openPlain returns the body of a packet outside of a session, if it has that payload type.
func openPlain(packet []byte, payload byte) ([]byte, error) {
	got, session, body, _, err := parsePacket(packet)
	if err != nil || got != payload || session != 0 {
		return nil, errPacket
	}
	return body, nil
}

// parsePacket splits a packet. The bytes behind the body are the trailer, if any.
func parsePacket(packet []byte) (payload byte, session uint32, body, trailer []byte, err error) {
	if len(packet) < len(rmcp)+sessionHeader || packet[0] != rmcp[0] || packet[3] != rmcp[3] || packet[4] != authRMCPPlus {
		return 0, 0, nil, nil, errPacket
	}
	h := packet[len(rmcp):]
	size := int(binary.LittleEndian.Uint16(h[10:]))
	if len(h) < sessionHeader+size {
		return 0, 0, nil, nil, errPacket
	}
	return h[1], binary.LittleEndian.Uint32(h[2:]), h[sessionHeader : sessionHeader+size], h[sessionHeader+size:], nil
}

// seal puts an IPMI message into a packet of an active session: encrypted, then signed (sections 13.28, 13.29).
func (k *keys) seal(message []byte, random [aes.BlockSize]byte) []byte {
	padded := bytes.Clone(message)
	for i := byte(1); (len(padded)+1)%aes.BlockSize != 0; i++ {
		padded = append(padded, i)
	}
	padded = append(padded, byte(len(padded)-len(message)))
	cipher.NewCBCEncrypter(k.encipher, random[:]).CryptBlocks(padded, padded)
	k.sequence++
	p := append(bytes.Clone(rmcp), authRMCPPlus, encrypted|authenticated|payloadIPMI)
	p = binary.LittleEndian.AppendUint32(p, k.theirs)
	p = binary.LittleEndian.AppendUint32(p, k.sequence)
	p = binary.LittleEndian.AppendUint16(p, uint16(len(random)+len(padded)))
	p = append(append(p, random[:]...), padded...)
	pads := byte(0)
	for ; (len(p)-len(rmcp)+2)%4 != 0; pads++ {
		p = append(p, 0xff)
	}
	p = append(p, pads, nextHeader)
	return append(p, k.suite.sign(k.signing, p[len(rmcp):])[:k.suite.trail]...)
}

// open returns the IPMI message in a packet of this session. It checks the signature before it uses the content.
func (k *keys) open(packet []byte) ([]byte, error) {
	payload, session, body, trailer, err := parsePacket(packet)
	if err != nil || payload != encrypted|authenticated|payloadIPMI || session != k.ours || len(trailer) < k.suite.trail+2 {
		return nil, errPacket
	}
	signed, code := packet[len(rmcp):len(packet)-k.suite.trail], packet[len(packet)-k.suite.trail:]
	if !hmac.Equal(code, k.suite.sign(k.signing, signed)[:k.suite.trail]) {
		return nil, errPacket
	}
	if len(body) < 2*aes.BlockSize || len(body)%aes.BlockSize != 0 {
		return nil, errPacket
	}
	clear := make([]byte, len(body)-aes.BlockSize)
	cipher.NewCBCDecrypter(k.encipher, body[:aes.BlockSize]).CryptBlocks(clear, body[aes.BlockSize:])
	pads := int(clear[len(clear)-1])
	if pads+1 > len(clear) {
		return nil, errPacket
	}
	return clear[:len(clear)-1-pads], nil
}

// Addresses in IPMI messages (table 5-4 and section 13.8).
const (
	bmc           = 0x20
	remoteConsole = 0x81
)

// message builds a request to the BMC (figure 13-4).
func message(lun, netFn, command, sequence byte, data []byte) []byte {
	m := []byte{bmc, netFn<<2 | lun&3, 0, remoteConsole, sequence << 2, command}
	m[2] = checksum(m[:2])
	m = append(m, data...)
	return append(m, checksum(m[3:]))
}

// parseMessage returns the completion code and data if m answers the given request.
func parseMessage(m []byte, netFn, command, sequence byte) (code byte, data []byte, ok bool) {
	if len(m) < 8 || checksum(m[:2]) != m[2] || checksum(m[3:len(m)-1]) != m[len(m)-1] {
		return 0, nil, false
	}
	if m[1]>>2 != netFn|1 || m[4]>>2 != sequence&0x3f || m[5] != command {
		return 0, nil, false
	}
	return m[6], m[7 : len(m)-1], true
}

// checksum returns the byte that makes the sum of all bytes, itself included, 0 modulo 256.
func checksum(b []byte) byte {
	sum := byte(0)
	for _, v := range b {
		sum -= v
	}
	return sum
}
