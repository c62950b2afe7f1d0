#!/bin/bash
# Benchmark of one daemon that runs already: resource collection, the load, a summary.
#
# Usage: run-benchmark.sh <daemon> [connections] [hold_time] [ramp_up]
#        run-benchmark.sh rust 5000 60s 20s
#
# From the environment, all optional:
#   SOCKET          the daemon's socket; else the one that it has by default
#   SOCKET_TYPE     stream or seqpacket; else what the load generator finds
#   DAEMON_PID      its process; else the one that listens on SOCKET
#   METRICS_PORT    of its Prometheus metrics; else 9090 for go and eddy, 9091 for rust
#   STREAM_TIMEOUT  how long one stream may take (120s)
#   RESULTS         folder of the results; else results/ with the time
#   LOAD_GENERATOR  command of the load; else `eddy bench handoff` of build/release or EDDY_BINARY
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
suite=$(dirname "$here")
daemon=${1:-} connections=${2:-100} hold=${3:-30s} ramp_up=${4:-10s}
case $daemon in
    go) socket=/var/run/streaming-daemon.sock port=9090 ;;
    python) socket=/var/run/streaming-daemon-py.sock port= ;;
    rust) socket=/var/run/streaming-daemon-rs.sock port=9091 ;;
    php) socket=/var/run/streaming-daemon-amp.sock port= ;;
    eddy) socket=/var/run/streaming-daemon.sock port=9090 ;;
    *) sed -n '2,16s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
socket=${SOCKET:-$socket} port=${METRICS_PORT-$port}
pid=${DAEMON_PID:-$(python3 -B "$here/daemons.py" find "$socket")}
kill -0 "$pid" || { echo "run-benchmark.sh: the daemon $daemon does not run" >&2; exit 1; }

results=${RESULTS:-$suite/results/$(date +%Y-%m-%d-%H%M%S)}/$daemon
mkdir -p "$results"
read -r -a load <<<"${LOAD_GENERATOR:-${EDDY_BINARY:-$suite/../../build/release/eddy} bench handoff}"
# The daemon has core 0 to itself, where there are two.
pin=()
[[ $(nproc) -lt 2 ]] || ! command -v taskset >/dev/null || pin=(taskset -c 1)

"${pin[@]}" "$here/collect-resources.sh" "$pid" "$results/resources.csv" $port &
collector=$!
trap 'kill -TERM "$collector" 2>/dev/null || true; wait "$collector" || true' EXIT
sleep 1  # samples of the memory before the load

status=0
"${pin[@]}" "${load[@]}" -socket "$socket" ${SOCKET_TYPE:+-socket-type "$SOCKET_TYPE"} -connections "$connections" \
    -ramp-up "$ramp_up" -hold "$hold" -stream-timeout "${STREAM_TIMEOUT:-120s}" -output "$results/benchmark.json" || status=$?
kill -TERM "$collector" 2>/dev/null || true
wait "$collector" || true
trap - EXIT
[[ -e $results/benchmark.json ]] || { echo "run-benchmark.sh: the load has left no result" >&2; exit 1; }
python3 -B "$here/analyze.py" "$(dirname "$results")"
exit "$status"
