#!/usr/bin/env bash
# Mirror of a distribution's package archive: prints its base URI, in which pool/ and dists/ lie: that of
# $EDDY_DEBIAN_MIRROR or $EDDY_UBUNTU_MIRROR, or the one from which this system's apt has its packages.
#
# Usage: tools/archive_mirror.sh debian|ubuntu
#
# Fails, with the reason, where neither is known: the archive of another distribution than this system's
# has to be named.
set -euo pipefail

case ${1:-} in
    debian) origin=Debian variable=EDDY_DEBIAN_MIRROR ;;
    ubuntu) origin=Ubuntu variable=EDDY_UBUNTU_MIRROR ;;
    *) sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
mirror=${!variable:-}
if [[ -z $mirror ]]; then
    # The label distinguishes the archive from that of security updates, which has a pool of its own.
    # shellcheck disable=SC2016
    mirror=$(apt-get indextargets --format '$(ORIGIN)|$(LABEL)|$(CODENAME)|$(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
        awk -F'|' -v origin="$origin" '$1 == origin && $2 == origin && $3 !~ /-security$/ { print $4; exit }') || true
fi
[[ -n $mirror ]] || {
    echo "archive_mirror.sh: apt has no archive of $origin on this system; name one in $variable" >&2
    exit 1
}
printf '%s\n' "${mirror%/}"
