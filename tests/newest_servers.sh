#!/bin/sh
# Comparison of the cache's newest commands with the replies of the servers in $EDDY_REDIS_8_6 and $EDDY_VALKEY_9_1.
#
# Usage: newest_servers.sh <cache_test>
if [ -z "$EDDY_REDIS_8_6$EDDY_VALKEY_9_1" ]; then
    echo "skipped: EDDY_REDIS_8_6 and EDDY_VALKEY_9_1 name no servers; ./eddy-dev test fetches them"
    exit 77
fi
exec "$1" --gtest_brief=1 --gtest_filter='*differential_newest*'
