// Package replant proves that the tests would notice. Each file in patches brings one
// known mistake back into the product: no fsync, an append after a failed write, a
// savepoint ahead of the acknowledgements. TestReplant builds the product with each of
// them in turn and runs the tests that the patch names; these must turn red, by their own
// verdict and with the words that the patch expects. A suite that stays green on a known
// mistake is the defect.
//
// etcd keeps such a list of its past bugs (tests/robustness, "make test-robustness-issue…").
//
// A patch is a unified diff below a few lines of this form:
//
//	# Mistake: what is wrong, in one line
//	# Seen in: where it is known from, if that is public
//	# Caught by: ./wal TestHeals: 0 commits are durable
//	# Caught in minutes by: ./e2e/crashlab TestPowerCut: are lost
//
// Each "Caught by" line is one proof: the package, the test, and a regular expression for
// what the test says. The last kind runs the built agent on real file systems and belongs
// to the full tier.
//
// Nothing is copied but the files that a patch touches: go build -overlay puts them in
// place of the originals, so that everything unchanged comes from the build cache. A patch
// that no longer applies fails: it must be renewed.
package replant
