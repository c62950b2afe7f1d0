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
import java.nio.channels.ClosedChannelException;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
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
