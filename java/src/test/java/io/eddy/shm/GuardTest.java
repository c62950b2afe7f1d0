// Exclusion of a direction's calls: with a bias, when another thread revokes it, and at the end.
package io.eddy.shm;

import static io.eddy.shm.Fixtures.eventually;
import static io.eddy.shm.Fixtures.get;
import static io.eddy.shm.Fixtures.inThread;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.InputStream;
import java.net.SocketException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(120)
class GuardTest {
    @BeforeAll
    static void registers() {
        Assumptions.assumeTrue(Fences.register(), "this kernel has no membarrier(2)");
    }

    private static void enterOften(Guard guard) throws SocketException {
        for (int i = 0; i < 2 * Guard.ENTRIES_BEFORE_BIAS; ++i) {
            guard.enter();
            guard.exit();
        }
    }

    /** A guard that is biased to this thread. */
    private static Guard biased() throws SocketException {
        Guard guard = new Guard(null);
        assertFalse(guard.tryEnterBiased());
        enterOften(guard);
        assertTrue(guard.tryEnterBiased());
        guard.exit();
        return guard;
    }

    @Test
    void theBiasIsForOneThreadUntilAnotherOneComes() throws Exception {
        Guard guard = biased();
        get(inThread(() -> {
            assertFalse(guard.tryEnterBiased());
            guard.enter();
            guard.exit();
            return null;
        }));
        assertFalse(guard.tryEnterBiased());
        get(inThread(() -> {
            enterOften(guard);
            assertTrue(guard.tryEnterBiased());
            guard.exit();
            return null;
        }));
        assertFalse(guard.tryEnterBiased());
        guard.enter();
        guard.exit();
    }

    @Test
    void anotherThreadWaitsForTheBiasedOne() throws Exception {
        Guard guard = biased();
        guard.enter();
        assertFalse(get(inThread(guard::tryEnter)));
        CompletableFuture<Void> other = inThread(() -> {
            guard.enter();
            guard.exit();
            return null;
        });
        eventually("the bias is revoked", () -> guard.bias.isRevoked());
        assertFalse(other.isDone());
        guard.exit();
        get(other);
        assertTrue(guard.tryEnter());
        guard.exit();
    }

    @Test
    void closeWaitsForTheBiasedThread() throws Exception {
        Guard guard = biased();
        guard.enter();
        CompletableFuture<Boolean> closed = inThread(guard::close);
        eventually("the bias is revoked", () -> guard.bias.isRevoked());
        assertFalse(closed.isDone());
        guard.exit();
        assertTrue(get(closed));
        assertThrows(SocketException.class, guard::enter);
        assertFalse(guard.tryEnter());
        assertFalse(guard.tryEnterBiased());
        assertFalse(guard.close());
    }

    /** Threads that wait in a call of one direction cost nothing while nothing comes, and one wake-up a call at most. */
    @Test
    void threadsThatWaitForTheirTurnSleep() throws Exception {
        int threads = 100;
        ShmSocket[] both = ShmSocket.pair(ShmOptions.DEFAULT);
        InputStream in = both[1].getInputStream();
        AtomicInteger read = new AtomicInteger();
        List<CompletableFuture<Void>> readers = new ArrayList<>();
        for (int t = 0; t < threads; ++t) {
            readers.add(inThread(() -> {
                while (in.read() >= 0) {
                    read.incrementAndGet();
                }
                return null;
            }));
        }
        Guard guard = both[1].guardOfReads();
        eventually("all wait", () -> guard.parkedCount() == threads - 1);
        long before = guard.wakeUps();
        int bytes = 200;
        for (int i = 1; i <= bytes; ++i) {
            int expected = i;
            both[0].getOutputStream().write(i);
            eventually("a byte is read", () -> read.get() == expected);
        }
        eventually("all wait again", () -> guard.parkedCount() == threads - 1);
        // A park may end for no reason, but hardly ever does.
        assertTrue(guard.wakeUps() - before <= 2 * bytes, guard.wakeUps() - before + " wake-ups");
        both[0].shutdownOutput();
        for (CompletableFuture<Void> each : readers) {
            get(each);
        }
        assertEquals(0, guard.parkedCount());
        both[0].close();
        both[1].close();
    }

    @Test
    void closeEndsAllThatWait() throws Exception {
        for (boolean isBiased : new boolean[] {false, true}) {
            Guard guard = isBiased ? biased() : new Guard(null);
            guard.enter();
            List<CompletableFuture<Object>> waiting = new ArrayList<>();
            for (int t = 0; t < 20; ++t) {
                waiting.add(inThread(() -> assertThrows(SocketException.class, () -> {
                    for (;;) {
                        guard.enter();
                        guard.exit();
                    }
                })));
            }
            List<CompletableFuture<Boolean>> closing = new ArrayList<>();
            for (int t = 0; t < 3; ++t) {
                closing.add(inThread(guard::close));
            }
            // One that came to a biased guard has the state, and waits for the biased thread.
            eventually("all wait", () -> guard.parkedCount() == (isBiased ? 22 : 23));
            guard.exit();
            int closed = 0;
            for (CompletableFuture<Boolean> each : closing) {
                closed += get(each) ? 1 : 0;
            }
            assertEquals(1, closed);
            for (CompletableFuture<Object> each : waiting) {
                get(each);
            }
            assertEquals(0, guard.parkedCount());
        }
    }

    @Test
    void anInterruptIsPutOffWhileAThreadWaits() throws Exception {
        Guard guard = new Guard(null);
        guard.enter();
        CompletableFuture<Thread> begun = new CompletableFuture<>();
        CompletableFuture<Boolean> other = inThread(() -> {
            begun.complete(Thread.currentThread());
            guard.enter();
            guard.exit();
            return Thread.interrupted();
        });
        eventually("it waits", () -> guard.parkedCount() == 1);
        get(begun).interrupt();
        eventually("it has noticed", () -> guard.wakeUps() > 0);
        assertFalse(other.isDone());
        guard.exit();
        assertTrue(get(other));
    }

    private long count;

    @Test
    void oneThreadAtATimeWhileTheBiasGoesToAndFro() throws Exception {
        Guard guard = new Guard(null);
        int rounds = 300;
        CountDownLatch begin = new CountDownLatch(2);
        CompletableFuture<?>[] threads = new CompletableFuture<?>[2];
        for (int t = 0; t < threads.length; ++t) {
            threads[t] = inThread(() -> {
                begin.countDown();
                begin.await();
                for (int round = 0; round < rounds; ++round) {
                    for (int i = 0; i < Guard.ENTRIES_BEFORE_BIAS + 500; ++i) {
                        guard.enter();
                        ++count;
                        guard.exit();
                    }
                }
                return null;
            });
        }
        for (CompletableFuture<?> each : threads) {
            get(each);
        }
        assertEquals(2L * rounds * (Guard.ENTRIES_BEFORE_BIAS + 500), count);
    }

    @Test
    void eachByteIsReadOnceByThreadsThatTakeTurns() throws Exception {
        int threads = 4;
        int each = 1_000;
        for (int round = 0; round < 20; ++round) {
            ShmSocket[] both = ShmSocket.pair(ShmOptions.DEFAULT.withRingSize(ShmOptions.MIN_RING_SIZE));
            CompletableFuture<?>[] writers = new CompletableFuture<?>[threads];
            List<CompletableFuture<long[]>> readers = new ArrayList<>();
            for (int t = 0; t < threads; ++t) {
                int value = t + 1;
                writers[t] = inThread(() -> {
                    for (int i = 0; i < each; ++i) {
                        both[0].getOutputStream().write(value);
                    }
                    return null;
                });
                readers.add(inThread(() -> {
                    long[] seen = new long[256];
                    for (int got; (got = both[1].getInputStream().read()) >= 0;) {
                        ++seen[got];
                    }
                    return seen;
                }));
            }
            for (CompletableFuture<?> writer : writers) {
                get(writer);
            }
            both[0].shutdownOutput();
            long[] all = new long[256];
            for (CompletableFuture<long[]> reader : readers) {
                long[] seen = get(reader);
                for (int i = 0; i < all.length; ++i) {
                    all[i] += seen[i];
                }
            }
            for (int i = 0; i < all.length; ++i) {
                assertEquals(i >= 1 && i <= threads ? each : 0, all[i], "bytes of " + i);
            }
            both[0].close();
            both[1].close();
        }
    }
}
