// Jedis, as its users write it.
package eddy;

import static eddy.Steps.eventually;
import static eddy.Steps.everything;
import static eddy.Steps.fails;
import static eddy.Steps.is;
import static eddy.Steps.needs;
import static eddy.Steps.step;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import redis.clients.jedis.*;
import redis.clients.jedis.exceptions.JedisAccessControlException;
import redis.clients.jedis.exceptions.JedisConnectionException;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.params.ScanParams;
import redis.clients.jedis.params.SetParams;
import redis.clients.jedis.resps.ScanResult;
import redis.clients.jedis.resps.Tuple;

public final class JedisClient {
    private static DefaultJedisClientConfig.Builder config() {
        return DefaultJedisClientConfig.builder().socketTimeoutMillis(30_000)
            .protocol(Steps.RESP3 ? RedisProtocol.RESP3 : RedisProtocol.RESP2);
    }

    private static Jedis connect(DefaultJedisClientConfig.Builder config) {
        return new Jedis(new HostAndPort("127.0.0.1", Steps.PORT), config.build());
    }

    public static void main(String[] args) throws Exception {
        Steps.version(Jedis.class);
        Jedis r = connect(config());
        step("hello", () -> {
            is(r.ping(), "PONG");
            try (Jedis named = connect(config().clientName("eddy-test"))) {
                is(named.clientGetname(), "eddy-test");
                String info = named.clientInfo();
                is(info.contains("name=eddy-test"), true);
                is(!info.contains("lib-name=") || info.contains("lib-name=jedis"), true);
            }
        });
        step("strings", () -> {
            is(r.set("k", "v"), "OK");
            is(r.get("k"), "v");
            is(r.get("none"), null);
            is(r.set("k", "w", SetParams.setParams().nx().ex(100)), null);
            is(r.setGet("k", "w"), "v");
            is(r.mset("a", "1", "b", "2"), "OK");
            is(r.mget("a", "b", "none"), Arrays.asList("1", "2", null));
            is(r.incrBy("n", 42), 42L);
            is(r.incrByFloat("n", 0.5), 42.5);
            is(r.del("a", "b", "none"), 2L);
        });
        step("hashes", () -> {
            is(r.hset("h", Map.of("a", "1", "b", "two")), 2L);
            is(r.hgetAll("h"), Map.of("a", "1", "b", "two"));
            is(r.hincrBy("h", "a", 4), 5L);
            is(r.hmget("h", "b", "c"), Arrays.asList("two", null));
        });
        step("lists", () -> {
            is(r.rpush("l", "a", "b", "c"), 3L);
            is(r.lrange("l", 0, -1), List.of("a", "b", "c"));
            is(r.lpop("l", 2), List.of("a", "b"));
        });
        step("sets", () -> {
            is(r.sadd("s", "a", "b"), 2L);
            is(r.smembers("s"), Set.of("a", "b"));
            is(r.sismember("s", "a"), true);
        });
        step("sorted sets", () -> {
            is(r.zadd("z", Map.of("a", 1.0, "b", 2.5)), 2L);
            is(r.zrangeWithScores("z", 0, -1), List.of(new Tuple("a", 1.0), new Tuple("b", 2.5)));
            is(r.zscore("z", "b"), 2.5);
            is(r.zincrby("z", 10, "a"), 11.0);
            is(r.zpopmin("z"), new Tuple("b", 2.5));
        });
        step("expiry", () -> {
            r.setex("e", 100, "1");
            is(r.ttl("e") > 0, true);
            is(r.persist("e"), 1L);
            is(r.pexpire("e", 1), 1L);
            eventually("the key's end", () -> !r.exists("e"));
        });
        step("pipeline", () -> {
            try (AbstractPipeline p = r.pipelined()) {
                List<Response<String>> got = new ArrayList<>();
                for (int i = 0; i < 5000; ++i) {
                    p.set("p" + i, "" + i);
                    got.add(p.get("p" + i));
                }
                p.sync();
                for (int i = 0; i < 5000; ++i) {
                    is(got.get(i).get(), "" + i);
                }
            }
        });
        step("transactions", () -> {
            r.set("balance", "10");
            try (AbstractTransaction t = r.multi()) {
                t.incr("balance");
                t.get("balance");
                is(t.exec(), List.of(11L, "11"));
            }
            r.watch("balance");
            try (Jedis other = connect(config())) {
                other.set("balance", "100");
            }
            AbstractTransaction t = r.multi();
            t.set("balance", "1");
            is(t.exec(), null);
            is(r.get("balance"), "100");
        });
        step("pub/sub", () -> {
            LinkedBlockingQueue<String> got = new LinkedBlockingQueue<>();
            CountDownLatch ready = new CountDownLatch(2);
            JedisPubSub listener = new JedisPubSub() {
                @Override
                public void onMessage(String channel, String message) {
                    got.add("message " + message);
                }

                @Override
                public void onPMessage(String pattern, String channel, String message) {
                    got.add("pmessage " + message);
                }

                @Override
                public void onSubscribe(String channel, int count) {
                    ready.countDown();
                    try {
                        psubscribe("n*s");
                    } catch (RuntimeException error) {
                        got.add(error.toString());
                    }
                }

                @Override
                public void onPSubscribe(String pattern, int count) {
                    ready.countDown();
                }
            };
            CompletableFuture<Void> thread = CompletableFuture.runAsync(() -> {
                try (Jedis sub = connect(config())) {
                    sub.subscribe(listener, "news");
                }
            });
            ready.await();
            is(r.publish("news", "hello"), 2L);
            is(Set.of(got.take(), got.take()), Set.of("message hello", "pmessage hello"));
            listener.unsubscribe();
            listener.punsubscribe();
            thread.get();
        });
        step("scan", () -> {
            Set<String> seen = new HashSet<>();
            String cursor = ScanParams.SCAN_POINTER_START;
            do {
                ScanResult<String> part = r.scan(cursor, new ScanParams().match("p*").count(100));
                seen.addAll(part.getResult());
                cursor = part.getCursor();
            } while (!cursor.equals("0"));
            is(seen.size(), 5000);
        });
        step("blocking", () -> {
            is(r.blpop(0.2, "empty"), null);
            CompletableFuture<String> waiting = CompletableFuture.supplyAsync(() -> {
                try (Jedis waiter = connect(config())) {
                    return waiter.brpop(30, "q1", "q2").get(1);
                }
            });
            eventually("a blocked client", () -> r.info("clients").contains("blocked_clients:1"));
            r.lpush("q2", "job");
            is(waiting.get(), "job");
        });
        step("binary", () -> {
            r.set(everything(), everything());
            is(Arrays.equals(r.get(everything()), everything()), true);
        });
        step("large", () -> {
            byte[] value = new byte[40 << 20];
            Arrays.fill(value, (byte) 'x');
            r.set("large".getBytes(), value);
            is(Arrays.equals(r.get("large".getBytes()), value), true);
            r.del("large");
        });
        step("unicode", () -> {
            for (String text : List.of("Zażółć gęślą jaźń", "日本語", "😀🚀")) {
                r.set("u:" + text, text);
                is(r.get("u:" + text), text);
            }
        });
        step("errors", () -> {
            r.set("str", "x");
            fails(JedisDataException.class, "WRONGTYPE Operation against a key holding the wrong kind of value",
                () -> r.lpush("str", "1"));
            fails(JedisDataException.class, "ERR value is not an integer or out of range", () -> r.incr("str"));
        });
        step("databases", () -> {
            try (Jedis three = connect(config().database(3))) {
                three.set("only", "here");
                is(r.exists("only"), false);
                is(three.dbSize(), 1L);
            }
        });
        step("pool", () -> {
            try (RedisClient pool = RedisClient.builder().hostAndPort("127.0.0.1", Steps.PORT).clientConfig(config().build()).build()) {
                List<CompletableFuture<Void>> all = new ArrayList<>();
                for (int i = 0; i < 8; ++i) {
                    all.add(CompletableFuture.runAsync(() -> {
                        for (int j = 0; j < 100; ++j) {
                            pool.incr("counter");
                        }
                    }));
                }
                for (CompletableFuture<Void> each : all) {
                    each.get();
                }
                is(pool.get("counter"), "800");
            }
        });
        step("password", () -> {
            r.configSet("requirepass", "open sesame");
            try {
                fails(JedisDataException.class, "NOAUTH", () -> {
                    try (Jedis none = connect(config())) {
                        none.ping();
                    }
                });
                fails(JedisAccessControlException.class, "WRONGPASS", () -> connect(config().password("wrong")).ping());
                try (Jedis good = connect(config().user("default").password("open sesame"))) {
                    is(good.ping(), "PONG");
                }
            } finally {
                r.configSet("requirepass", "");
            }
        });
        step("restart", () -> {
            try (RedisClient pool = RedisClient.builder().hostAndPort("127.0.0.1", Steps.PORT).clientConfig(config().build()).build()) {
                pool.set("before", "1");
                Steps.restartServer();
                eventually("a reconnect", () -> {
                    try {
                        return pool.set("after", "1").equals("OK");
                    } catch (JedisConnectionException broken) {
                        return false;
                    }
                });
            }
        });
        Jedis again = connect(config());
        step("scripts", () -> {
            needs("eval", "evalsha", "script|load");
            is(again.eval("return {KEYS[1], ARGV[1]}", 1, "k", "v"), List.of("k", "v"));
            String sha = again.scriptLoad("return redis.call('INCRBY', KEYS[1], ARGV[1])");
            is(again.evalsha(sha, List.of("sn"), List.of("21")), 21L);
        });
        step("streams", () -> {
            needs("xadd", "xreadgroup");
            StreamEntryID id = again.xadd("stream", StreamEntryID.NEW_ENTRY, Map.of("a", "1"));
            again.xgroupCreate("stream", "g", new StreamEntryID(0, 0), false);
            is(again.xreadGroup("g", "me", redis.clients.jedis.params.XReadGroupParams.xReadGroupParams(),
                Map.of("stream", StreamEntryID.XREADGROUP_UNDELIVERED_ENTRY)).get(0).getValue().get(0).getID(), id);
            is(again.xack("stream", "g", id), 1L);
        });
        step("tracking", () -> {
            needs("client|tracking");
            if (!Steps.RESP3) {
                throw new Steps.NotYet("Jedis keeps a client-side cache with RESP3 alone");
            }
            String[] version = again.info("server").replaceAll("(?s).*redis_version:([0-9.]+).*", "$1").split("\\.");
            if (Integer.parseInt(version[0]) * 100 + Integer.parseInt(version[1]) < 704) {
                throw new Steps.NotYet("Jedis wants a redis_version of 7.4 or more");
            }
            try (RedisClient cached = RedisClient.builder().hostAndPort("127.0.0.1", Steps.PORT)
                    .clientConfig(config().build())
                    .cacheConfig(redis.clients.jedis.csc.CacheConfig.builder().maxSize(100).build()).build()) {
                again.set("tracked", "1");
                is(cached.get("tracked"), "1");
                again.set("tracked", "2");
                eventually("the invalidation", () -> "2".equals(cached.get("tracked")));
            }
        });
        step("acl", () -> {
            needs("acl|setuser", "acl|whoami");
            is(again.aclWhoAmI(), "default");
            again.aclSetUser("reader", "on", ">secret", "+@read", "+@connection", "~pub:*");
            try (Jedis reader = connect(config().user("reader").password("secret"))) {
                fails(JedisAccessControlException.class, "", () -> reader.set("pub:x", "1"));
            }
            again.aclDelUser("reader");
        });
        Steps.finish();
    }

    private JedisClient() {
    }
}
