package disk

import "syscall"

// Direct is a flag of [Directory.Open]: writes go to the disk past the page cache, in whole sectors from memory of [Aligned]
// (open(2), O_DIRECT). Such a write is durable only after Sync, as any other. Open fails where the file system cannot do it.
const Direct = syscall.O_DIRECT
