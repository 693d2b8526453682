#!/bin/sh
# A removal keeps configuration, log and user. dpkg --purge asks for their end, too.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload || true
fi
if [ "$1" = purge ]; then
	rm -rf /etc/hwsagent /var/lib/hwsagent /etc/systemd/system/hwsagent.service.d
	rm -f /etc/systemd/system/multi-user.target.wants/hwsagent.service
	if getent passwd hwsagent >/dev/null; then
		userdel hwsagent
	fi
	if getent group hwsagent >/dev/null; then
		groupdel hwsagent
	fi
fi
