#!/bin/sh
# A new installation starts nothing: what to collect and where to send it is not known yet. An upgrade goes on with the
# new program where the old one ran; what was collected is in the log.
set -e
case "$1" in
configure | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9) ;; # dpkg's word, or how many versions rpm has
*) exit 0 ;;
esac
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	systemctl try-restart hwsagent.service || echo "hwsagent does not start: look at journalctl -u hwsagent" >&2
fi
