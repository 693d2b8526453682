// Package raid is a probe that reads RAID controllers by the programs of their makers: controllers, volumes, member
// disks, batteries, and the progress of rebuilds and patrol reads.
//
// storcli and perccli answer in JSON (Broadcom, StorCLI Reference Manual, 12Gb/s MegaRAID SAS); ssacli, arcconf, sas3ircu and
// sas2ircu print text for people. A physical disk has the hw_id that the probes smart and host give it.
package raid
