// Jedis over shared memory to a cache of the daemon.
package io.eddy.shm;

import static io.eddy.shm.Fixtures.eventually;
import static io.eddy.shm.Fixtures.get;
import static io.eddy.shm.Fixtures.inThread;
import static io.eddy.shm.Fixtures.random;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.eddy.example.SharedMemoryCache;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import redis.clients.jedis.AbstractPipeline;
import redis.clients.jedis.AbstractTransaction;
import redis.clients.jedis.ConnectionPool;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisPubSub;
import redis.clients.jedis.Response;
import redis.clients.jedis.args.ClientPauseMode;
import redis.clients.jedis.exceptions.JedisConnectionException;

@Timeout(120)
class JedisTest {
    private static final Duration PATIENCE = Duration.ofSeconds(Fixtures.DEADLINE_S);
    private static final int LARGE = 10 * 1024 * 1024;

    private static String path;
    private static SharedMemoryCache cache;

    @BeforeAll
    static void findTheCache() {
        path = System.getProperty("eddy.cache", "");
        Assumptions.assumeFalse(path.isEmpty(), "there is no cache over shared memory: tests/java_test.py starts one");
        cache = new SharedMemoryCache(path, PATIENCE);
    }

    @BeforeEach
    void clear() {
        try (Jedis client = cache.connect()) {
            client.flushAll();
        }
    }

    @Test
    void theCacheSharesMemory() throws Exception {
        try (ShmSocket socket = new ShmSocket(path)) {
            assertTrue(socket.sharesMemory());
        }
    }

    @Test
    void setsAndGets() {
        try (Jedis client = cache.connect()) {
            assertEquals("PONG", client.ping());
            assertEquals("OK", client.set("key", "value"));
            assertEquals("value", client.get("key"));
            assertNull(client.get("none"));
            byte[] bytes = random(1000, 1);
            client.set(bytes, bytes);
            assertArrayEquals(bytes, client.get(bytes));
            for (int i = 0; i < 1000; ++i) {
                assertEquals(i + 1, client.incr("count"));
            }
        }
    }

    @Test
    void pipelinesMoreThanTheRing() {
        String value = "v".repeat(100);
        List<Response<String>> replies = new ArrayList<>();
        try (Jedis client = cache.connect(); AbstractPipeline pipeline = client.pipelined()) {
            for (int i = 0; i < 20_000; ++i) {
                pipeline.set("key" + i, value + i);
                replies.add(pipeline.get("key" + i));
            }
            pipeline.sync();
        }
        for (int i = 0; i < replies.size(); ++i) {
            assertEquals(value + i, replies.get(i).get());
        }
    }

    @Test
    void transactionsAreWholeOrNothing() {
        try (Jedis client = cache.connect(); Jedis other = cache.connect()) {
            client.set("balance", "10");
            try (AbstractTransaction transaction = client.multi()) {
                transaction.incr("balance");
                transaction.get("balance");
                assertEquals(List.of(11L, "11"), transaction.exec());
            }
            client.watch("balance");
            other.set("balance", "100");
            try (AbstractTransaction transaction = client.multi()) {
                transaction.set("balance", "1");
                assertNull(transaction.exec());
            }
            assertEquals("100", client.get("balance"));
        }
    }

    @Test
    void aValueIsLargerThanTheRing() {
        byte[] key = "large".getBytes();
        byte[] value = random(LARGE, 2);
        try (Jedis client = cache.connect()) {
            for (int i = 0; i < 3; ++i) {
                assertEquals("OK", client.set(key, value));
                assertArrayEquals(value, client.get(key));
            }
        }
    }

    @Test
    void aSubscriberInAnotherThreadGetsMessages() throws Exception {
        LinkedBlockingQueue<String> messages = new LinkedBlockingQueue<>();
        CompletableFuture<Void> subscribed = new CompletableFuture<>();
        JedisPubSub subscriber = new JedisPubSub() {
            @Override
            public void onSubscribe(String channel, int count) {
                subscribed.complete(null);
            }

            @Override
            public void onMessage(String channel, String message) {
                messages.add(message);
            }
        };
        CompletableFuture<Void> thread = inThread(() -> {
            try (Jedis client = cache.connect()) {
                client.subscribe(subscriber, "news");
            }
            return null;
        });
        get(subscribed);
        try (Jedis client = cache.connect()) {
            for (int i = 0; i < 1000; ++i) {
                assertEquals(1, client.publish("news", "message " + i));
            }
        }
        for (int i = 0; i < 1000; ++i) {
            assertEquals("message " + i, messages.poll(Fixtures.DEADLINE_S, TimeUnit.SECONDS));
        }
        subscriber.unsubscribe();
        get(thread);
    }

    @Test
    void aBlockingCallEndsByItsTimeoutOrAValue() throws Exception {
        try (Jedis client = cache.connect()) {
            assertNull(client.blpop(0.05, "queue"));
            CompletableFuture<List<String>> waiting = inThread(() -> {
                try (Jedis waiter = cache.connect()) {
                    return waiter.blpop(0, "queue");
                }
            });
            eventually("a blocked client", () -> client.info("clients").contains("blocked_clients:1"));
            client.rpush("queue", "job");
            assertEquals(List.of("queue", "job"), get(waiting));
        }
    }

    @Test
    void aSilentServerEndsTheWaitForAReply() {
        try (Jedis client = new SharedMemoryCache(path, Duration.ofMillis(50)).connect(); Jedis other = cache.connect()) {
            other.clientPause(TimeUnit.SECONDS.toMillis(Fixtures.DEADLINE_S), ClientPauseMode.WRITE);
            assertThrows(JedisConnectionException.class, () -> client.set("key", "value"));
        } finally {
            try (Jedis other = cache.connect()) {
                other.clientUnpause();
            }
        }
    }

    @Test
    void eightThreadsShareAPool() throws Exception {
        int threads = 8;
        int rounds = 500;
        try (ConnectionPool pool = cache.pool(threads)) {
            List<CompletableFuture<Void>> all = new ArrayList<>();
            for (int i = 0; i < threads; ++i) {
                String own = "own" + i;
                all.add(inThread(() -> {
                    for (int round = 0; round < rounds; ++round) {
                        try (Jedis client = SharedMemoryCache.borrow(pool)) {
                            client.incr("all");
                            assertEquals(round + 1, client.incr(own));
                        }
                    }
                    return null;
                }));
            }
            for (CompletableFuture<Void> each : all) {
                get(each);
            }
            assertTrue(pool.getCreatedCount() <= threads, pool.getCreatedCount() + " connections");
        }
        try (Jedis client = cache.connect()) {
            assertEquals("" + threads * rounds, client.get("all"));
        }
    }

    private static void eddy(String... words) throws Exception {
        List<String> command = new ArrayList<>(List.of(words));
        command.add(0, System.getProperty("eddy.program"));
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        String output = new String(process.getInputStream().readAllBytes());
        assertEquals(0, process.waitFor(), output);
    }

    @Test
    void connectsAgainAfterTheCachesRestart() throws Exception {
        Assumptions.assumeFalse(System.getProperty("eddy.program", "").isEmpty(), "the cache cannot be restarted");
        try (ConnectionPool pool = cache.pool(2); Jedis waiter = cache.connect()) {
            try (Jedis client = SharedMemoryCache.borrow(pool)) {
                client.set("key", "before");
            }
            CompletableFuture<List<String>> waiting = inThread(() -> waiter.blpop(0, "queue"));
            try (Jedis client = cache.connect()) {
                eventually("a blocked client", () -> client.info("clients").contains("blocked_clients:1"));
            }
            eddy("stop", "db");
            Exception ended = assertThrows(Exception.class, () -> get(waiting));
            assertTrue(ended.getCause() instanceof JedisConnectionException, ended.toString());
            assertThrows(JedisConnectionException.class, cache::connect);
            eddy("start", "db");
            eventually("a connection of the pool that works", () -> {
                try (Jedis client = SharedMemoryCache.borrow(pool)) {
                    return client.set("key", "after").equals("OK");
                } catch (JedisConnectionException broken) {
                    // The pool drops it.
                    return false;
                }
            });
            try (Jedis client = cache.connect()) {
                assertEquals("after", client.get("key"));
            }
        }
    }
}
