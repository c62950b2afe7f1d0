// ShmChannel: blocking, and with a selector.
package io.eddy.shm;

import static io.eddy.shm.Fixtures.get;
import static io.eddy.shm.Fixtures.inThread;
import static io.eddy.shm.Fixtures.name;
import static io.eddy.shm.Fixtures.random;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.channels.AsynchronousCloseException;
import java.nio.channels.ClosedByInterruptException;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(120)
class ChannelTest {
    @Test
    void blocksAndScattersAndGathers() throws Exception {
        String name = name();
        try (ShmServerSocket server = new ShmServerSocket(name); ShmChannel client = ShmChannel.connect(name);
                ShmChannel peer = server.acceptChannel()) {
            byte[] sent = random(3_000_000, 1);
            CompletableFuture<Long> written = inThread(() -> client.write(new ByteBuffer[] {
                ByteBuffer.wrap(sent, 0, 10), ByteBuffer.allocate(0), ByteBuffer.wrap(sent, 10, sent.length - 10)}));
            byte[] got = new byte[sent.length];
            ByteBuffer[] into = {ByteBuffer.wrap(got, 0, 1000), ByteBuffer.wrap(got, 1000, got.length - 1000)};
            while (into[1].hasRemaining()) {
                assertTrue(peer.read(into) > 0);
            }
            assertArrayEquals(sent, got);
            assertEquals(sent.length, get(written));
            client.shutdownOutput();
            assertEquals(-1, peer.read(ByteBuffer.allocate(1)));
            assertThrows(UnsupportedOperationException.class, peer::selectable);
            peer.close();
            assertFalse(peer.isOpen());
            assertThrows(ClosedChannelException.class, () -> peer.read(ByteBuffer.allocate(1)));
        }
    }

    /** Both ends of a connection, as sockets and as channels wake: the accepted one by futex(2). */
    private static ShmChannel[] connected() throws Exception {
        String name = name();
        try (ShmServerSocket server = new ShmServerSocket(name)) {
            ShmChannel client = ShmChannel.connect(name, ShmOptions.DEFAULT.withRingSize(ShmOptions.MIN_RING_SIZE));
            return new ShmChannel[] {client, server.acceptChannel()};
        }
    }

    private static final ByteBuffer LARGE = ByteBuffer.allocate(10_000_000).asReadOnlyBuffer();

    private static <T extends Throwable> void assertFails(Class<T> how, CompletableFuture<?> call) {
        ExecutionException ended = assertThrows(ExecutionException.class, () -> get(call));
        assertEquals(how, ended.getCause().getClass(), () -> ended.getCause().toString());
    }

    private static void awaitSleep(AtomicReference<Thread> of, boolean reads) throws Exception {
        Fixtures.eventually("a thread", () -> of.get() != null);
        Fixtures.awaitCall(of.get(), reads ? "sleepForBytes" : "sleepForRoom");
    }

    @Test
    void closeEndsCallsOfOtherThreads() throws Exception {
        for (int i = 0; i < 2; ++i) {
            ShmChannel[] both = connected();
            ShmChannel closed = both[i];
            AtomicReference<Thread> reader = new AtomicReference<>();
            AtomicReference<Thread> writer = new AtomicReference<>();
            CompletableFuture<Integer> reading = inThread(() -> {
                reader.set(Thread.currentThread());
                return closed.read(ByteBuffer.allocate(1));
            });
            CompletableFuture<Integer> writing = inThread(() -> {
                writer.set(Thread.currentThread());
                return closed.write(LARGE.duplicate());
            });
            awaitSleep(reader, true);
            awaitSleep(writer, false);
            closed.close();
            assertFails(AsynchronousCloseException.class, reading);
            assertFails(AsynchronousCloseException.class, writing);
            both[1 - i].close();
        }
    }

    @Test
    void anInterruptClosesTheChannel() throws Exception {
        for (int i = 0; i < 4; ++i) {
            ShmChannel[] both = connected();
            ShmChannel its = both[i % 2];
            boolean reads = i < 2;
            AtomicReference<Thread> calling = new AtomicReference<>();
            CompletableFuture<Boolean> call = inThread(() -> {
                calling.set(Thread.currentThread());
                try {
                    int ignored = reads ? its.read(ByteBuffer.allocate(1)) : its.write(LARGE.duplicate());
                    return null;
                } catch (ClosedByInterruptException closed) {
                    return Thread.interrupted();
                }
            });
            awaitSleep(calling, reads);
            calling.get().interrupt();
            assertEquals(true, get(call));
            assertFalse(its.isOpen());
            // What was written before is read, and then the end.
            ByteBuffer into = ByteBuffer.allocate(100_000);
            while (both[1 - i % 2].read(into.clear()) >= 0) {
                assertTrue(into.position() > 0);
            }
            both[0].close();
            both[1].close();
        }
    }

    @Test
    void anInterruptBeforeACallClosesTheChannel() throws Exception {
        ShmChannel[] both = connected();
        both[0].write(ByteBuffer.allocate(1));
        CompletableFuture<Integer> reading = inThread(() -> {
            Thread.currentThread().interrupt();
            return both[1].read(ByteBuffer.allocate(1));
        });
        assertFails(ClosedByInterruptException.class, reading);
        assertFalse(both[1].isOpen());
        assertThrows(ClosedChannelException.class, () -> both[1].read(ByteBuffer.allocate(1)));
        both[0].close();
        both[1].close();
    }

    private static void select(Selector selector) throws Exception {
        assertTrue(selector.select(TimeUnit.SECONDS.toMillis(Fixtures.DEADLINE_S)) > 0, "nothing became ready");
        selector.selectedKeys().clear();
    }

    @Test
    void aSelectorWaitsForBytesForRoomAndForTheEnd() throws Exception {
        ShmChannel[] both = ShmChannel.pair(ShmOptions.DEFAULT.withRingSize(ShmOptions.MIN_RING_SIZE));
        try (ShmChannel one = both[0]; ShmChannel other = both[1]; Selector selector = Selector.open();
                Selector others = Selector.open()) {
            one.configureBlocking(false).selectable().register(selector, SelectionKey.OP_READ);
            other.configureBlocking(false).selectable().register(others, SelectionKey.OP_READ);
            byte[] sent = random(2_000_000, 9);
            CompletableFuture<Void> writer = inThread(() -> {
                ByteBuffer left = ByteBuffer.wrap(sent);
                while (left.hasRemaining()) {
                    if (one.write(left) == 0) {
                        select(selector);
                    }
                }
                one.close();
                return null;
            });
            ByteBuffer got = ByteBuffer.allocate(sent.length + 1);
            for (int size; (size = other.read(got)) >= 0;) {
                if (size == 0) {
                    select(others);
                }
            }
            get(writer);
            assertEquals(sent.length, got.position());
            assertArrayEquals(sent, java.util.Arrays.copyOf(got.array(), sent.length));
        }
    }

    @Test
    void anIdleSelectorIsNotReady() throws Exception {
        ShmChannel[] both = ShmChannel.pair(ShmOptions.DEFAULT);
        try (ShmChannel one = both[0]; ShmChannel other = both[1]; Selector selector = Selector.open()) {
            one.configureBlocking(false).selectable().register(selector, SelectionKey.OP_READ);
            select(selector);
            assertEquals(0, one.read(ByteBuffer.allocate(10)));
            assertEquals(0, selector.selectNow());
            other.write(ByteBuffer.wrap(new byte[] {1}));
            select(selector);
            assertEquals(1, one.read(ByteBuffer.allocate(10)));
            assertEquals(0, one.read(ByteBuffer.allocate(10)));
            assertEquals(0, selector.selectNow());
        }
    }
}
