#!/bin/sh
# Prints the version of a package from that of the program, which `git describe` gives: v1.2.3 is 1.2.3, v1.2.3-4-gabcdef is
# 1.2.3+4.gabcdef. Without a tag it is 0.0.0 with the time of the commit, so that a later commit is a newer package.
set -e
version=${1#v}
case "$version" in
[0-9]*.[0-9]*) ;;
*) version=0.0.0-$(git show -s --date=format-local:%Y%m%d%H%M%S --format=%cd HEAD 2>/dev/null || echo 0)-$version ;;
esac
echo "$version" | sed 's/-/+/; s/-/./g'
