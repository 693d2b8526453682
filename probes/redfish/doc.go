// Package redfish is a probe that reads one service of DMTF's Redfish: a management controller (iDRAC, iLO, XCC,
// OpenBMC, …), a power or cooling distribution unit, a shelf.
//
// It follows the links in the table of roles.go from the service's root (walk.go), and turns the resources into
// components, states and readings of package hw (mapper.go and the files beside it). Resources are JSON by the Redfish
// Specification, DSP0266, and the schemas of DSP8010; a part that deviates from these is skipped by itself.
package redfish
