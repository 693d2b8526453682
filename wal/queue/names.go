package queue

import (
	"errors"
	"fmt"
	"strings"
)

// A family is a target plus its members, which are discovered while the log is read. The name
// of a member is the target's name, a slash, and a part without a slash. One entry of the
// configuration stands for all of them.

// Member returns the target name of a member of a family.
func Member(family, member string) string { return family + "/" + member }

// MemberOf is the inverse of Member; ok is false if the name is not that of a member of the family.
func MemberOf(family, name string) (member string, ok bool) {
	member, ok = strings.CutPrefix(name, family+"/")
	return member, ok && member != "" && !strings.Contains(member, "/")
}

// IsMember reports whether a name is that of a member of the family.
func IsMember(family, name string) bool {
	_, ok := MemberOf(family, name)
	return ok
}

const MaxNameBytes = 245 // of a target's name as part of a path, see CheckName

// CheckName returns an error if the name is not valid for a target. Targets also have files outside the log, in whose names
// each byte other than a small letter, a digit, '-' or '_' may take three bytes.
func CheckName(name string) error {
	if name == "" {
		return errors.New("target has no name")
	}
	n := len(name)
	for _, c := range []byte(name) {
		if !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_') {
			n += 2
		}
	}
	if n > MaxNameBytes {
		return fmt.Errorf("target's name %q is too long for a file name: give it a shorter one", name)
	}
	return nil
}
