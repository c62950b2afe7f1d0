// Lettuce, as its users write it: one connection for many threads, on Netty.
package eddy;

import static eddy.Steps.eventually;
import static eddy.Steps.everything;
import static eddy.Steps.fails;
import static eddy.Steps.is;
import static eddy.Steps.needs;
import static eddy.Steps.step;

import io.lettuce.core.*;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.async.RedisAsyncCommands;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.protocol.ProtocolVersion;
import io.lettuce.core.pubsub.RedisPubSubAdapter;
import io.lettuce.core.pubsub.StatefulRedisPubSubConnection;
import io.lettuce.core.support.caching.CacheAccessor;
import io.lettuce.core.support.caching.CacheFrontend;
import io.lettuce.core.support.caching.ClientSideCaching;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;

public final class LettuceClient {
    private static RedisURI.Builder uri() {
        return RedisURI.builder().withHost("127.0.0.1").withPort(Steps.PORT).withTimeout(Duration.ofSeconds(30));
    }

    private static RedisClient open(RedisURI uri) {
        RedisClient client = RedisClient.create(uri);
        client.setOptions(ClientOptions.builder()
            .protocolVersion(Steps.RESP3 ? ProtocolVersion.RESP3 : ProtocolVersion.RESP2).build());
        return client;
    }

    public static void main(String[] args) throws Exception {
        Steps.version(RedisClient.class);
        RedisClient client = open(uri().build());
        StatefulRedisConnection<String, String> connection = client.connect();
        RedisCommands<String, String> r = connection.sync();
        step("hello", () -> {
            is(r.ping(), "PONG");
            try (RedisClient second = open(uri().withClientName("eddy-test").build());
                 StatefulRedisConnection<String, String> named = second.connect()) {
                is(named.sync().clientGetname(), "eddy-test");
                String list = r.clientList();
                is(!list.contains("lib-name=") || list.contains("lib-name=Lettuce") || list.contains("lib-name=lettuce"), true);
            }
        });
        step("strings", () -> {
            is(r.set("k", "v"), "OK");
            is(r.get("k"), "v");
            is(r.get("none"), null);
            is(r.set("k", "w", SetArgs.Builder.nx().ex(100)), null);
            is(r.setGet("k", "w"), "v");
            is(r.mset(Map.of("a", "1", "b", "2")), "OK");
            is(r.mget("a", "none").get(1).hasValue(), false);
            is(r.incrby("n", 42), 42L);
            is(r.incrbyfloat("n", 0.5), 42.5);
            is(r.del("a", "b", "none"), 2L);
        });
        step("hashes", () -> {
            is(r.hset("h", Map.of("a", "1", "b", "two")), 2L);
            is(r.hgetall("h"), Map.of("a", "1", "b", "two"));
            is(r.hincrby("h", "a", 4), 5L);
            is(r.hexists("h", "c"), false);
        });
        step("lists", () -> {
            is(r.rpush("l", "a", "b", "c"), 3L);
            is(r.lrange("l", 0, -1), List.of("a", "b", "c"));
            is(r.lpop("l", 2), List.of("a", "b"));
        });
        step("sets", () -> {
            is(r.sadd("s", "a", "b"), 2L);
            is(r.smembers("s"), Set.of("a", "b"));
            is(r.smismember("s", "a", "x"), List.of(true, false));
        });
        step("sorted sets", () -> {
            is(r.zadd("z", ScoredValue.just(1, "a"), ScoredValue.just(2.5, "b")), 2L);
            is(r.zrangeWithScores("z", 0, -1), List.of(ScoredValue.just(1, "a"), ScoredValue.just(2.5, "b")));
            is(r.zscore("z", "b"), 2.5);
            is(r.zpopmin("z"), ScoredValue.just(1, "a"));
            is(r.geoadd("geo", 13.361389, 38.115556, "Palermo"), 1L);
            is(r.geopos("geo", "Palermo", "none").get(1), null);
        });
        step("expiry", () -> {
            r.setex("e", 100, "1");
            is(r.ttl("e") > 0, true);
            is(r.expire("e", 50, ExpireArgs.Builder.lt()), true);
            is(r.persist("e"), true);
            is(r.pexpire("e", 1), true);
            eventually("the key's end", () -> r.exists("e") == 0);
        });
        step("pipeline", () -> {
            RedisAsyncCommands<String, String> async = connection.async();
            connection.setAutoFlushCommands(false);
            List<RedisFuture<String>> got = new ArrayList<>();
            for (int i = 0; i < 5000; ++i) {
                async.set("p" + i, "" + i);
                got.add(async.get("p" + i));
            }
            connection.flushCommands();
            connection.setAutoFlushCommands(true);
            for (int i = 0; i < 5000; ++i) {
                is(got.get(i).get(), "" + i);
            }
        });
        step("reactive", () -> is(connection.reactive().get("p7").block(Duration.ofSeconds(15)), "7"));
        step("transactions", () -> {
            r.set("balance", "10");
            r.multi();
            r.incr("balance");
            r.get("balance");
            TransactionResult result = r.exec();
            is(result.get(0), 11L);
            is(result.get(1), "11");
            r.watch("balance");
            try (StatefulRedisConnection<String, String> other = client.connect()) {
                other.sync().set("balance", "100");
            }
            r.multi();
            r.set("balance", "1");
            is(r.exec().wasDiscarded(), true);
            is(r.get("balance"), "100");
        });
        step("pub/sub", () -> {
            LinkedBlockingQueue<String> got = new LinkedBlockingQueue<>();
            try (StatefulRedisPubSubConnection<String, String> sub = client.connectPubSub()) {
                sub.addListener(new RedisPubSubAdapter<>() {
                    @Override
                    public void message(String channel, String message) {
                        got.add("message " + message);
                    }

                    @Override
                    public void message(String pattern, String channel, String message) {
                        got.add("pmessage " + message);
                    }
                });
                sub.sync().subscribe("news");
                sub.sync().psubscribe("n*s");
                is(r.publish("news", "hello"), 2L);
                is(Set.of(got.take(), got.take()), Set.of("message hello", "pmessage hello"));
                sub.sync().unsubscribe("news");
            }
        });
        step("scan", () -> {
            Set<String> seen = new HashSet<>();
            ScanIterator<String> keys = ScanIterator.scan(r, ScanArgs.Builder.matches("p*").limit(100));
            keys.forEachRemaining(seen::add);
            is(seen.size(), 5000);
        });
        step("blocking", () -> {
            try (StatefulRedisConnection<String, String> waiter = client.connect()) {
                is(waiter.sync().blpop(0.2, "empty"), null);
                RedisFuture<KeyValue<String, String>> pop = waiter.async().brpop(30, "q1", "q2");
                eventually("a blocked client", () -> r.info("clients").contains("blocked_clients:1"));
                r.lpush("q2", "job");
                is(pop.get(), KeyValue.just("q2", "job"));
            }
        });
        step("binary and large", () -> {
            try (StatefulRedisConnection<byte[], byte[]> bytes = client.connect(ByteArrayCodec.INSTANCE)) {
                bytes.sync().set(everything(), everything());
                is(Arrays.equals(bytes.sync().get(everything()), everything()), true);
                byte[] value = new byte[40 << 20];
                Arrays.fill(value, (byte) '\n');
                bytes.sync().set("large".getBytes(), value);
                is(Arrays.equals(bytes.sync().get("large".getBytes()), value), true);
                bytes.sync().del("large".getBytes());
            }
        });
        step("unicode", () -> {
            for (String text : List.of("Zażółć gęślą jaźń", "日本語", "😀🚀")) {
                r.set("u:" + text, text);
                is(r.get("u:" + text), text);
            }
        });
        step("errors", () -> {
            r.set("str", "x");
            fails(RedisCommandExecutionException.class, "WRONGTYPE Operation against a key holding the wrong kind of value",
                () -> r.lpush("str", "1"));
            fails(RedisCommandExecutionException.class, "ERR value is not an integer or out of range", () -> r.incr("str"));
        });
        step("databases", () -> {
            try (RedisClient second = open(uri().withDatabase(3).build());
                 StatefulRedisConnection<String, String> three = second.connect()) {
                three.sync().set("only", "here");
                is(r.exists("only"), 0L);
            }
        });
        step("commands", () -> {
            is(r.commandCount() > 100, true);
            is(r.commandInfo("get").size(), 1);
            is(r.configGet("maxmemory"), Map.of("maxmemory", "0"));
            is(r.memoryUsage("str") > 0, true);
            is(r.objectEncoding("str"), "embstr");
        });
        step("password", () -> {
            r.configSet("requirepass", "sesame");
            try {
                fails(RedisCommandExecutionException.class, "NOAUTH", () -> {
                    try (RedisClient none = open(uri().build())) {
                        none.connect().sync().ping();
                    }
                });
                fails(RedisCommandExecutionException.class, "WRONGPASS", () -> {
                    try (RedisClient bad = open(uri().withPassword("wrong".toCharArray()).build())) {
                        bad.connect();
                    }
                });
                try (RedisClient good = open(uri().withAuthentication("default", "sesame".toCharArray()).build())) {
                    is(good.connect().sync().ping(), "PONG");
                }
            } finally {
                r.configSet("requirepass", "");
            }
        });
        step("restart", () -> {
            LinkedBlockingQueue<String> got = new LinkedBlockingQueue<>();
            try (StatefulRedisPubSubConnection<String, String> sub = client.connectPubSub()) {
                sub.addListener(new RedisPubSubAdapter<>() {
                    @Override
                    public void message(String channel, String message) {
                        got.add(message);
                    }
                });
                sub.sync().subscribe("again");
                Steps.restartServer();
                eventually("a reconnect", () -> {
                    try {
                        return r.set("after", "1").equals("OK");
                    } catch (RedisException broken) {
                        return false;
                    }
                });
                eventually("the subscription again", () -> {
                    r.publish("again", "x");
                    return !got.isEmpty();
                });
            }
        });
        step("scripts", () -> {
            needs("eval", "evalsha", "script|load");
            is(r.eval("return {KEYS[1], ARGV[1]}", ScriptOutputType.MULTI, new String[] {"k"}, "v"), List.of("k", "v"));
            is(r.evalsha(r.scriptLoad("return 1 + 1"), ScriptOutputType.INTEGER), 2L);
        });
        step("streams", () -> {
            needs("xadd", "xreadgroup");
            String id = r.xadd("stream", Map.of("a", "1"));
            r.xgroupCreate(XReadArgs.StreamOffset.from("stream", "0"), "g");
            is(r.xreadgroup(Consumer.from("g", "me"), XReadArgs.StreamOffset.lastConsumed("stream")).get(0).getId(), id);
            is(r.xack("stream", "g", id), 1L);
        });
        step("tracking", () -> {
            needs("client|tracking");
            if (!Steps.RESP3) {
                throw new Steps.NotYet("Lettuce keeps a client-side cache with RESP3 alone");
            }
            Map<String, String> local = new ConcurrentHashMap<>();
            try (StatefulRedisConnection<String, String> tracked = client.connect()) {
                CacheFrontend<String, String> cache = ClientSideCaching.enable(CacheAccessor.forMap(local), tracked,
                    TrackingArgs.Builder.enabled());
                r.set("tracked", "1");
                is(cache.get("tracked"), "1");
                r.set("tracked", "2");
                eventually("the invalidation", () -> "2".equals(cache.get("tracked")));
            }
        });
        step("acl", () -> {
            needs("acl|setuser", "acl|whoami");
            is(r.aclWhoami(), "default");
            r.aclSetuser("reader", AclSetuserArgs.Builder.on().addPassword("secret").addCategory(AclCategory.READ)
                .addCategory(AclCategory.CONNECTION).keyPattern("pub:*"));
            try (RedisClient second = open(uri().withAuthentication("reader", "secret".toCharArray()).build())) {
                RedisCommands<String, String> reader = second.connect().sync();
                fails(RedisCommandExecutionException.class, "NOPERM", () -> reader.set("pub:x", "1"));
            }
            r.aclDeluser("reader");
        });
        connection.close();
        client.shutdown();
        Steps.finish();
    }

    private LettuceClient() {
    }
}
