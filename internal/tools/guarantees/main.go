// Command guarantees writes the figures of a full run into docs/guarantees.md: the section between the markers of the
// last full run, and in the tables the text after "<!-- measured: WHAT -->", from the lines of the run that begin with
// WHAT. Cells without a line in the run stay as they are.
//
//	go run ./internal/tools/guarantees -results FILE docs/guarantees.md
package main

import (
	"flag"
	"fmt"
	"os"

	"hwsagent/internal/tools/results"
)

func main() {
	file := flag.String("results", "", "what internal/tools/torture wrote")
	flag.Parse()
	if *file == "" || flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: guarantees -results FILE PAGE")
		os.Exit(2)
	}
	if err := update(flag.Arg(0), *file); err != nil {
		fmt.Fprintln(os.Stderr, "guarantees:", err)
		os.Exit(1)
	}
}

func update(page, file string) error {
	run, err := results.Read(file)
	if err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	with, err := render(string(text), run)
	if err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	return os.WriteFile(page, []byte(with), 0o600)
}
