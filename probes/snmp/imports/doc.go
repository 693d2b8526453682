// Package imports converts files of other programs to definitions of package library: profiles of the
// Datadog dialect, and LibreNMS' files with its folder of MIBs. It reads a directory and returns the texts
// of definitions, and a list, by file, of the entries that it could not convert.
package imports
