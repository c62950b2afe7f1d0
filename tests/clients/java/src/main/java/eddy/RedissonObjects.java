// Redisson's objects: buckets, maps, queues, locks, topics. Most of them stand on scripts.
package eddy;

import static eddy.Steps.eventually;
import static eddy.Steps.is;
import static eddy.Steps.needs;
import static eddy.Steps.step;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.*;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;

public final class RedissonObjects {
    public static void main(String[] args) throws Exception {
        Steps.version(Redisson.class);
        Config config = new Config();
        config.setCodec(StringCodec.INSTANCE);
        config.useSingleServer().setAddress("redis://127.0.0.1:" + Steps.PORT).setClientName("eddy-test")
            .setConnectionMinimumIdleSize(2).setConnectionPoolSize(16).setRetryAttempts(2);
        RedissonClient r = Redisson.create(config);
        step("buckets", () -> {
            RBucket<String> bucket = r.getBucket("b");
            bucket.set("v", Duration.ofSeconds(100));
            is(bucket.get(), "v");
            is(bucket.remainTimeToLive() > 0, true);
            is(bucket.delete(), true);
            is(bucket.isExists(), false);
        });
        step("compare and set", () -> {
            needs("eval");
            RBucket<String> bucket = r.getBucket("cas");
            bucket.set("a");
            is(bucket.compareAndSet("a", "b"), true);
            is(bucket.compareAndSet("a", "c"), false);
            is(bucket.getAndDelete(), "b");
        });
        step("maps", () -> {
            RMap<String, String> map = r.getMap("m");
            map.fastPut("a", "1");
            map.fastPut("b", "2");
            is(map.get("a"), "1");
            is(map.readAllMap(), Map.of("a", "1", "b", "2"));
            is(map.size(), 2);
        });
        step("maps that return old values", () -> {
            needs("eval");
            RMap<String, String> map = r.getMap("m2");
            is(map.put("a", "1"), null);
            is(map.put("a", "2"), "1");
            is(map.putIfAbsent("a", "3"), "2");
            RMapCache<String, String> cache = r.getMapCache("m3");
            cache.put("a", "1", 50, TimeUnit.MILLISECONDS);
            eventually("the entry's end", () -> cache.get("a") == null);
        });
        step("lists, sets, sorted sets", () -> {
            RList<String> list = r.getList("l");
            list.add("a");
            list.add("b");
            is(list.readAll(), List.of("a", "b"));
            RSet<String> set = r.getSet("s");
            is(set.add("a"), true);
            is(set.add("a"), false);
            RScoredSortedSet<String> sorted = r.getScoredSortedSet("z");
            sorted.add(2, "b");
            sorted.add(1, "a");
            is(List.copyOf(sorted.readAll()), List.of("a", "b"));
        });
        step("counters", () -> {
            RAtomicLong counter = r.getAtomicLong("n");
            is(counter.incrementAndGet(), 1L);
            is(counter.addAndGet(41), 42L);
        });
        step("batches", () -> {
            RBatch batch = r.createBatch(BatchOptions.defaults().executionMode(BatchOptions.ExecutionMode.IN_MEMORY_ATOMIC));
            batch.getBucket("x1").setAsync("1");
            RFuture<Object> got = batch.getBucket("x1").getAsync();
            batch.execute();
            is(got.toCompletableFuture().get(), "1");
        });
        step("topics", () -> {
            LinkedBlockingQueue<String> got = new LinkedBlockingQueue<>();
            RTopic topic = r.getTopic("news");
            topic.addListener(String.class, (channel, message) -> got.add(message));
            RPatternTopic pattern = r.getPatternTopic("n*s");
            pattern.addListener(String.class, (p, channel, message) -> got.add(message));
            is(topic.publish("hello"), 2L);
            is(got.take() + got.take(), "hellohello");
            topic.removeAllListeners();
        });
        step("blocking queues", () -> {
            RBlockingQueue<String> queue = r.getBlockingQueue("q");
            is(queue.poll(200, TimeUnit.MILLISECONDS), null);
            CompletableFuture<String> taken = CompletableFuture.supplyAsync(() -> {
                try {
                    return queue.poll(15, TimeUnit.SECONDS);
                } catch (InterruptedException error) {
                    return null;
                }
            });
            queue.offer("job");
            is(taken.get(), "job");
        });
        step("keys", () -> {
            for (int i = 0; i < 500; ++i) {
                r.getBucket("keys:" + i).set("x");
            }
            long count = 0;
            for (String ignored : r.getKeys().getKeys(org.redisson.api.options.KeysScanOptions.defaults().pattern("keys:*"))) {
                ++count;
            }
            is(count, 500L);
            is(r.getKeys().deleteByPattern("keys:*"), 500L);
        });
        step("scripts", () -> {
            needs("eval", "evalsha");
            is(r.getScript().eval(RScript.Mode.READ_WRITE, "return redis.call('incr', KEYS[1])", RScript.ReturnType.LONG,
                List.of("sn")), 1L);
        });
        step("locks", () -> {
            needs("eval", "evalsha");
            RLock lock = r.getLock("lock");
            is(lock.tryLock(1, 30, TimeUnit.SECONDS), true);
            is(CompletableFuture.supplyAsync(() -> lock.tryLock()).get(), false);
            CompletableFuture<Boolean> waiting = CompletableFuture.supplyAsync(() -> {
                try {
                    boolean taken = lock.tryLock(15, 30, TimeUnit.SECONDS);
                    lock.unlock();
                    return taken;
                } catch (InterruptedException error) {
                    return false;
                }
            });
            lock.unlock();
            is(waiting.get(), true);
            is(lock.isLocked(), false);
        });
        step("rate limits and semaphores", () -> {
            needs("eval", "evalsha");
            RRateLimiter limiter = r.getRateLimiter("rate");
            limiter.trySetRate(RateType.OVERALL, 2, Duration.ofMinutes(1));
            is(limiter.tryAcquire() && limiter.tryAcquire(), true);
            is(limiter.tryAcquire(), false);
            RSemaphore semaphore = r.getSemaphore("semaphore");
            semaphore.trySetPermits(1);
            is(semaphore.tryAcquire(), true);
            is(semaphore.tryAcquire(), false);
            semaphore.release();
        });
        step("restart", () -> {
            Steps.restartServer();
            eventually("a reconnect", () -> {
                try {
                    r.getBucket("after").set("1");
                    return true;
                } catch (RuntimeException broken) {
                    return false;
                }
            });
        });
        r.shutdown();
        Steps.finish();
    }

    private RedissonObjects() {
    }
}
