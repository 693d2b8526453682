// Package util stands in for the one of the same name: see package client beside it.
package util

// GetConfigFilePathFromEnv is where the environment says that a configuration is: nowhere.
func GetConfigFilePathFromEnv() string { return "" }

// GetDefaultConfigFilePath is where it is otherwise: nowhere.
func GetDefaultConfigFilePath() string { return "" }
