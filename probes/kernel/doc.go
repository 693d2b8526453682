// Package kernel is a probe that counts the errors that the kernel of Linux reports in its log: machine checks, PCI
// Express, disks, file systems, memory, and NVIDIA's Xid messages. They appear in no file of /proc or /sys, or only in part.
//
// The log is /dev/kmsg (the kernel's Documentation/ABI/testing/dev-kmsg): one record for each read, with a sequence number
// that is unique for a boot. Only records of the kernel itself count; a program that writes to the log cannot forge them.
package kernel
