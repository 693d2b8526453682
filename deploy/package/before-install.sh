#!/bin/sh
# Makes the user before the files are there that belong to it. It stays when the package is removed, for the log is its.
set -e
if ! getent group hwsagent >/dev/null; then
	groupadd --system hwsagent
fi
if ! getent passwd hwsagent >/dev/null; then
	useradd --system --gid hwsagent --home-dir /var/lib/hwsagent --no-create-home --shell /usr/sbin/nologin hwsagent
fi
