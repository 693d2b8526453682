// Package redfish is a probe that reads one service of DMTF's Redfish: a management controller (iDRAC, iLO, XCC,
// OpenBMC, …), a power or cooling distribution unit, a shelf.
//
// It goes from the service's root along the links that the table in roles.go names (walk.go), and makes
// components, states and readings in the words of package hw of what it read (mapper.go and the files beside it).
// What is read is JSON by the Redfish Specification, DSP0266, and the schemas of DSP8010; whatever is not as these
// say costs itself only.
package redfish
