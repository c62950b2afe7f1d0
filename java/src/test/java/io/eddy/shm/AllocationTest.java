// Round trips that allocate nothing once they are compiled.
package io.eddy.shm;

import static io.eddy.shm.Fixtures.get;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.ThreadMXBean;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

@Timeout(120)
class AllocationTest {
    private static final int ROUNDS = 100_000;
    /** With a system call or two for each of them. */
    private static final int SLEEPING_ROUNDS = 10_000;
    /** Bytes of a whole series: for what the measurement, and a compiler that is not done yet, allocate. */
    private static final long BUDGET = 4096;
    /** Series until one is within the budget. One byte a round trip would be beyond it in each. */
    private static final int MOST_SERIES = 10;

    private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

    private interface RoundTrip {
        void run() throws IOException;
    }

    /** The sum of these threads. */
    private static long allocated(long[] threads) {
        return Arrays.stream(THREADS.getThreadAllocatedBytes(threads)).sum();
    }

    /** This thread's number, that thread's, and those of the library's own threads. */
    private static long[] threadsWith(Thread other) {
        return Stream.concat(Stream.of(Thread.currentThread(), other), Thread.getAllStackTraces().keySet().stream()
                .filter(each -> each.getName().startsWith("eddy-shm-"))).mapToLong(AllocationTest::number).toArray();
    }

    @SuppressWarnings("deprecation") // threadId() is there from JDK 19 on
    private static long number(Thread thread) {
        return thread.getId();
    }

    private static void assertAllocatesNothing(int rounds, long[] threads, RoundTrip trip) throws IOException {
        long least = Long.MAX_VALUE;
        for (int series = 0; series < MOST_SERIES && least > BUDGET; ++series) {
            long before = allocated(threads);
            for (int i = 0; i < rounds; ++i) {
                trip.run();
            }
            least = Math.min(least, allocated(threads) - before);
        }
        assertTrue(least <= BUDGET, rounds + " round trips allocated " + least + " bytes");
    }

    private static Thread start(CompletableFuture<Void> done, RoundTrip work) {
        Thread thread = new Thread(() -> {
            try {
                work.run();
                done.complete(null);
            } catch (Throwable error) {
                done.completeExceptionally(error);
            }
        });
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    @Test
    void callsThatDoNotWait() throws Exception {
        ShmSocket[] both = ShmSocket.pair(ShmOptions.DEFAULT);
        ShmWriter question = both[0].writer();
        ShmReader questions = both[1].reader();
        ShmWriter answer = both[1].writer();
        ShmReader answers = both[0].reader();
        byte[] small = new byte[4];
        byte[] large = new byte[1024];
        assertAllocatesNothing(ROUNDS, new long[] {number(Thread.currentThread())}, () -> {
            question.write(small);
            question.flush();
            assertEquals(4, questions.peek().remaining());
            questions.consume(4);
            answer.room().putLong(0, 7);
            answer.append(1024);
            answer.flush();
            if (answers.read(large) != 1024) {
                throw new IOException("an answer is missing");
            }
        });
        both[0].close();
        both[1].close();
    }

    static Stream<ShmOptions> everyKind() {
        return SocketTest.everyKind().filter(options -> options.sharesMemory);
    }

    private static int rounds(ShmOptions options) {
        boolean maySleep = options.waiting == ShmOptions.Waiting.SLEEP || options.doorbell == ShmOptions.Doorbell.SOCKET;
        return maySleep ? SLEEPING_ROUNDS : ROUNDS;
    }

    @ParameterizedTest
    @MethodSource("everyKind")
    void readersAndWritersThatWait(ShmOptions options) throws Exception {
        ShmSocket[] both = ShmSocket.pair(options);
        CompletableFuture<Void> served = new CompletableFuture<>();
        Thread server = start(served, () -> {
            ShmReader reader = both[1].reader();
            ShmWriter writer = both[1].writer();
            byte[] question = new byte[4];
            byte[] answer = new byte[1024];
            while (reader.await()) {
                reader.read(question);
                writer.write(answer);
                writer.flush();
            }
        });
        ShmReader reader = both[0].reader();
        ShmWriter writer = both[0].writer();
        byte[] question = new byte[4];
        byte[] answer = new byte[1024];
        assertAllocatesNothing(rounds(options), threadsWith(server), () -> {
            writer.write(question);
            writer.flush();
            for (int got = 0; got < answer.length && reader.await();) {
                got += reader.read(answer, got, answer.length - got);
            }
        });
        both[0].close();
        get(served);
        both[1].close();
    }

    @ParameterizedTest
    @MethodSource("everyKind")
    void streamsOfSockets(ShmOptions options) throws Exception {
        ShmSocket[] both = ShmSocket.pair(options);
        CompletableFuture<Void> served = new CompletableFuture<>();
        Thread server = start(served, () -> {
            InputStream in = both[1].getInputStream();
            OutputStream out = both[1].getOutputStream();
            byte[] question = new byte[4];
            byte[] answer = new byte[1024];
            while (in.read(question) > 0) {
                out.write(answer);
            }
        });
        InputStream in = both[0].getInputStream();
        OutputStream out = both[0].getOutputStream();
        byte[] question = new byte[4];
        byte[] answer = new byte[1024];
        assertAllocatesNothing(rounds(options), threadsWith(server), () -> {
            out.write(question);
            if (in.readNBytes(answer, 0, answer.length) != answer.length) {
                throw new IOException("the answer ended");
            }
        });
        both[0].close();
        get(served);
        both[1].close();
    }
}
