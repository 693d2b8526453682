package main

import (
	"errors"
	"testing"
)

// TestConvertOfAnEmptyName: an empty word behind --, as a variable of a shell that is not set makes it, is a file that is not there.
func TestConvertOfAnEmptyName(t *testing.T) {
	missing := errors.New("no such file")
	_, err := converted("vmagent", []string{""}, true, func(string) ([]byte, error) { return nil, missing })
	if !errors.Is(err, missing) {
		t.Errorf("got %v", err)
	}
}
