// Package imports makes definitions of package library from files of other programs: profiles of the
// Datadog dialect, and LibreNMS' files with its folder of MIBs. It reads a directory and returns the texts
// of definitions, and a list of the entries that it could not carry over, file by file.
package imports
