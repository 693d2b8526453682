package targets

// turn is a mutex that may be held for long. Unlike for a sync.Mutex, virtual time (testing/synctest) passes while a
// goroutine waits for it.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

// Lock waits for the turn and takes it.
func (t turn) Lock() { t <- struct{}{} }

// TryLock takes the turn if it is free.
func (t turn) TryLock() bool {
	select {
	case t <- struct{}{}:
		return true
	default:
		return false
	}
}

// Unlock gives the turn back.
func (t turn) Unlock() { <-t }
