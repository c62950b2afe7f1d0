// Ends, interrupts and shared use of connections while other threads are within their calls.
package io.eddy.shm;

import static io.eddy.shm.Fixtures.eventually;
import static io.eddy.shm.Fixtures.get;
import static io.eddy.shm.Fixtures.inThread;
import static io.eddy.shm.Fixtures.name;
import static io.eddy.shm.Fixtures.random;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.io.InputStream;
import java.net.BindException;
import java.net.SocketException;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

@Timeout(120)
class RaceTest {
    static Stream<ShmOptions> everyKind() {
        return SocketTest.everyKind();
    }

    /** As a Socket's: bytes that came before are dropped. */
    @ParameterizedTest
    @MethodSource("everyKind")
    void inputThatWasShutDownIsAtItsEndWithBytesUnread(ShmOptions options) throws Exception {
        ShmSocket[] both = ShmSocket.pair(options);
        try (ShmSocket one = both[0]; ShmSocket other = both[1]) {
            InputStream in = one.getInputStream();
            other.getOutputStream().write(new byte[10]);
            one.shutdownInput();
            assertEquals(-1, get(inThread(() -> in.read(new byte[5]))));
            assertEquals(-1, get(inThread(() -> in.read())));
            assertEquals(0, in.available());
        }
    }

    @ParameterizedTest
    @MethodSource("everyKind")
    void inputMayBeShutDownWhileItIsRead(ShmOptions options) throws Exception {
        for (int i = 0; i < 200; ++i) {
            ShmSocket[] both = ShmSocket.pair(options);
            try (ShmSocket one = both[0]; ShmSocket other = both[1]) {
                InputStream in = one.getInputStream();
                CompletableFuture<Boolean> read = inThread(() -> {
                    while (in.read() >= 0) {
                        continue;
                    }
                    return true;
                });
                CompletableFuture<Void> written = inThread(() -> {
                    other.getOutputStream().write(1);
                    return null;
                });
                one.shutdownInput();
                assertTrue(get(read));
                get(written);
            }
        }
    }

    @ParameterizedTest
    @MethodSource("everyKind")
    void shutdownOutputCutsOffAWriteThatWaits(ShmOptions options) throws Exception {
        ShmSocket[] both = ShmSocket.pair(options);
        try (ShmSocket one = both[0]; ShmSocket other = both[1]) {
            CompletableFuture<Void> write = inThread(() -> {
                one.getOutputStream().write(new byte[20_000_000]);
                return null;
            });
            eventually("bytes", () -> other.getInputStream().available() > 0);
            get(inThread(() -> {
                one.shutdownOutput();
                return null;
            }));
            ExecutionException ended = assertThrows(ExecutionException.class, () -> get(write));
            assertTrue(ended.getCause() instanceof SocketException, ended.toString());
            int left = get(inThread(() -> other.getInputStream().readAllBytes().length));
            assertTrue(left < 20_000_000, left + " bytes");
            other.getOutputStream().write(7);
            assertEquals(7, one.getInputStream().read());
        }
    }

    @Test
    void threadsMayReadSingleBytesOfOneStream() throws Exception {
        ShmSocket[] both = ShmSocket.pair(ShmOptions.DEFAULT);
        try (ShmSocket one = both[0]; ShmSocket other = both[1]) {
            List<CompletableFuture<Long>> sums = new ArrayList<>();
            for (int i = 0; i < 4; ++i) {
                sums.add(inThread(() -> {
                    long sum = 0;
                    for (int value; (value = one.getInputStream().read()) >= 0;) {
                        sum += value;
                    }
                    return sum;
                }));
            }
            long expected = 0;
            for (int i = 0; i < 200; ++i) {
                byte[] sent = random(1000, i);
                for (byte each : sent) {
                    expected += each & 0xff;
                }
                other.getOutputStream().write(sent);
            }
            other.shutdownOutput();
            long all = 0;
            for (CompletableFuture<Long> each : sums) {
                all += get(each);
            }
            assertEquals(expected, all);
        }
    }

    private static void select(Selector selector) throws Exception {
        assertTrue(selector.select(TimeUnit.SECONDS.toMillis(Fixtures.DEADLINE_S)) > 0, "nothing is ready");
        selector.selectedKeys().clear();
    }

    /** The signalling thread may signal after the bytes were read: the channel is ready once more, and a read ends that. */
    private static void settle(Selector selector, ShmChannel of) throws Exception {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(Fixtures.DEADLINE_S);
        while (selector.selectNow() != 0) {
            assertTrue(System.nanoTime() < end, "it stays ready without bytes");
            selector.selectedKeys().clear();
            assertEquals(0, of.read(ByteBuffer.allocate(10)));
        }
    }

    /** One thread waits with the selector for bytes; the calls of the one that writes must not take its wake-up. */
    @Test
    void aSelectorStaysReadyForBytesWhileAnotherThreadWrites() throws Exception {
        ShmChannel[] both = ShmChannel.pair(ShmOptions.DEFAULT);
        try (ShmChannel one = both[0]; ShmChannel other = both[1]; Selector selector = Selector.open()) {
            one.configureBlocking(false);
            one.selectable().register(selector, SelectionKey.OP_READ);
            ByteBuffer into = ByteBuffer.allocate(10);
            for (int i = 0; i < 200; ++i) {
                other.write(ByteBuffer.wrap(new byte[] {1}));
                if (i % 2 == 0) {
                    select(selector);
                }
                one.write(ByteBuffer.wrap(new byte[] {2}));
                select(selector);
                assertEquals(1, one.read(into.clear()));
                assertEquals(0, one.read(into.clear()));
                settle(selector, one);
                assertEquals(1, other.read(into.clear()));
            }
        }
    }

    @Test
    void aSelectorStaysReadyForRoomWhileAnotherThreadReads() throws Exception {
        ShmChannel[] both = ShmChannel.pair(ShmOptions.DEFAULT.withRingSize(ShmOptions.MIN_RING_SIZE));
        try (ShmChannel one = both[0]; ShmChannel other = both[1]; Selector selector = Selector.open()) {
            one.configureBlocking(false);
            one.selectable().register(selector, SelectionKey.OP_READ);
            ByteBuffer sent = ByteBuffer.wrap(new byte[100_000]);
            ByteBuffer into = ByteBuffer.allocate(ShmOptions.MIN_RING_SIZE);
            for (int i = 0; i < 100; ++i) {
                while (one.write(sent.clear()) > 0) {
                    continue;
                }
                while (into.clear().hasRemaining() && other.configureBlocking(false).read(into) > 0) {
                    continue;
                }
                select(selector);
                assertEquals(0, one.read(ByteBuffer.allocate(1)));
                select(selector);
            }
        }
    }

    /** As a Socket's, which JDK 21 and newer close for a virtual thread. */
    @ParameterizedTest
    @MethodSource("everyKind")
    void interruptOfAVirtualThreadClosesTheSocket(ShmOptions options) throws Exception {
        ShmSocket[] both = ShmSocket.pair(options);
        try (ShmSocket one = both[0]; ShmSocket other = both[1]) {
            CompletableFuture<Boolean> interrupted = new CompletableFuture<>();
            Thread reader = virtual(() -> {
                try {
                    one.getInputStream().read();
                    interrupted.complete(false);
                } catch (IOException error) {
                    interrupted.complete(Thread.currentThread().isInterrupted());
                }
            });
            reader.interrupt();
            assertTrue(get(interrupted));
            eventually("closed", one::isClosed);
            assertEquals(-1, get(inThread(() -> other.getInputStream().read())));
        }
    }

    private static Thread virtual(Runnable work) throws Exception {
        try {
            return (Thread) Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, work);
        } catch (NoSuchMethodException old) {
            assumeTrue(false, "this JDK has no virtual threads");
            return null;
        }
    }

    /** Its listener never answers. */
    @Test
    void closeEndsConnect() throws Exception {
        ShmSocketAddress at = new ShmSocketAddress(name());
        int listener = Native.socket();
        assertEquals(0, Native.bind(listener, at.name()));
        assertEquals(0, Native.listen(listener, 5));
        ShmSocket socket = new ShmSocket(ShmOptions.DEFAULT.withHandshakeTimeout(java.time.Duration.ofMinutes(10)));
        CompletableFuture<Void> connected = inThread(() -> {
            socket.connect(at);
            return null;
        });
        socket.close();
        ExecutionException ended = assertThrows(ExecutionException.class, () -> get(connected));
        assertTrue(ended.getCause() instanceof SocketException, ended.toString());
        Native.close(listener);
    }

    /** Bytes that a peer published before it died are read, however many buffers they scatter over. */
    @Test
    void scatteringReadsKeepBytesBeforeAnError() throws Exception {
        String name = name();
        try (ShmServerSocket server = new ShmServerSocket(name)) {
            Process peer = Fixtures.java(DyingPeer.class, name);
            try (ShmChannel channel = server.acceptChannel()) {
                peer.waitFor();
                ByteBuffer[] into = {ByteBuffer.allocate(5), ByteBuffer.allocate(5)};
                assertEquals(5, channel.read(into));
                assertArrayEquals(random(5, 1), into[0].array());
                assertThrows(SocketException.class, () -> channel.read(into));
            }
        }
    }

    static final class DyingPeer {
        public static void main(String[] arguments) throws Exception {
            new ShmSocket(arguments[0]).getOutputStream().write(random(5, 1));
            Runtime.getRuntime().halt(0);
        }
    }

    @Test
    void readOnlyBuffersAreRefused() throws Exception {
        for (boolean shares : new boolean[] {true, false}) {
            ShmChannel[] both = ShmChannel.pair(ShmOptions.DEFAULT.withSharedMemory(shares));
            try (ShmChannel one = both[0]; ShmChannel other = both[1]) {
                ByteBuffer into = ByteBuffer.allocate(9).asReadOnlyBuffer();
                assertThrows(IllegalArgumentException.class, () -> one.configureBlocking(false).read(into));
                other.write(ByteBuffer.wrap(new byte[] {1, 2}).asReadOnlyBuffer());
                assertThrows(IllegalArgumentException.class, () -> one.configureBlocking(true).read(into));
                assertEquals(2, one.read(ByteBuffer.allocateDirect(9)));
            }
        }
    }

    @Test
    void callsThatNeedMemorySaySoWithoutIt() throws Exception {
        ShmSocket[] both = ShmSocket.pair(ShmOptions.DEFAULT.withSharedMemory(false));
        try (ShmSocket one = both[0]; ShmSocket other = both[1]) {
            assertThrows(SocketException.class, () -> one.reader().peek());
            assertThrows(SocketException.class, () -> one.reader().consume(0));
            assertThrows(SocketException.class, () -> one.writer().room());
            assertThrows(SocketException.class, () -> one.writer().append(0));
            other.getOutputStream().write(new byte[7]);
            assertEquals(7, one.getInputStream().available());
        }
    }

    /** They refuse connections as the socket of a listener that has died does. */
    @Test
    void onlySocketsAreTakenForAbandonedOnes(@TempDir Path folder) throws Exception {
        Path pipe = folder.resolve("pipe");
        assertEquals(0, new ProcessBuilder("mkfifo", pipe.toString()).start().waitFor());
        assertThrows(BindException.class, () -> new ShmServerSocket(pipe.toString()));
        assertTrue(Files.exists(pipe));
        Path link = folder.resolve("link");
        Files.createSymbolicLink(link, folder.resolve("nothing"));
        assertThrows(BindException.class, () -> new ShmServerSocket(link.toString()));
        assertTrue(Files.isSymbolicLink(link));
    }

    /** As of a Socket: the garbage collector closes it, and its peer sees the end. */
    @ParameterizedTest
    @MethodSource("everyKind")
    void connectionsThatWereDroppedAreClosed(ShmOptions options) throws Exception {
        ShmSocket.pair(options);
        long before = Fixtures.resources();
        List<InputStream> peers = new ArrayList<>();
        for (int i = 0; i < 20; ++i) {
            ShmSocket kept = ShmSocket.pair(options)[0];
            kept.setSoTimeout(20);
            peers.add(kept.getInputStream());
        }
        eventually("the ends of those dropped", () -> {
            System.gc();
            for (InputStream each : peers) {
                if (get(inThread(() -> endsNow(each))) == false) {
                    return false;
                }
            }
            return true;
        });
        peers.clear();
        eventually("everything closed and unmapped", () -> {
            System.gc();
            return Fixtures.resources() <= before + 4;
        });
    }

    /** Whether reading ends without waiting long. */
    private static boolean endsNow(InputStream from) throws IOException {
        try {
            return from.read() < 0;
        } catch (java.net.SocketTimeoutException late) {
            return false;
        } catch (SocketException died) {
            return true;
        }
    }
}
