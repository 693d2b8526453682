// Package imports makes definitions of package library out of what users have of other programs: profiles
// of the Datadog dialect, and LibreNMS' files with its folder of MIBs. It reads a directory and gives the
// texts of files; what could not be carried over is said, file by file.
package imports
