#!/bin/sh
# Resource collection: memory, CPU and connections of a daemon and its workers, as CSV, until SIGTERM or the daemon's end.
#
# Usage: collect-resources.sh <pid> <output.csv> [metrics_port]
#
# INTERVAL is the time between two samples in seconds (1).
exec python3 -B "$(dirname "$0")/collect_resources.py" "$@"
