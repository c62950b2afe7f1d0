#!/bin/sh
# Comparison of the cache's replies with those of the server in $EDDY_REDIS_7_2, by the tests that compare them with the
# installed redis-server, too.
#
# Usage: redis_7_2.sh <cache_test>
if [ -z "$EDDY_REDIS_7_2" ]; then
    echo "skipped: EDDY_REDIS_7_2 names no server; ./eddy-dev test fetches one"
    exit 77
fi
EDDY_REDIS_SERVER=$EDDY_REDIS_7_2 exec "$1" --gtest_brief=1 \
    --gtest_filter='*differential*:with_redis.*:propagated_as_redis.*:acl.*'
