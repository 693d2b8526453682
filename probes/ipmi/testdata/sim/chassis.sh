#!/bin/sh
# Answers ipmi_sim's questions about the chassis: it is on.
if [ "$2" = get ]; then
	for word in "$@"; do
		case $word in
		power) echo power:1 ;;
		boot) echo boot:default ;;
		identify) echo identify:0 ;;
		esac
	done
fi
