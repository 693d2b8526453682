package agent

import "fmt"

// counted returns the number with the noun, in the plural unless the number is 1.
func counted(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
