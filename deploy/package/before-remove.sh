#!/bin/sh
# Stops the agent when the package goes, not when a newer one takes its place.
set -e
case "$1" in
remove | 0) ;;
*) exit 0 ;;
esac
if [ -d /run/systemd/system ]; then
	systemctl disable --now hwsagent.service || true
fi
