#!/bin/sh
# Full suite: all daemons at all levels of connections, one after the other; REPORT.md in results-YYYYMMDD-HHMMSS/.
#
# Usage: run_full_benchmark.sh [--levels N...] [--daemons NAME...] [OPTION...]; --help has all
exec python3 -B "$(dirname "$0")/scripts/full_benchmark.py" "$@"
