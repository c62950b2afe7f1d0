// Calls that do not wait, bounded by packets and by bytes.
package io.eddy.shm;

import static io.eddy.shm.Fixtures.get;
import static io.eddy.shm.Fixtures.inThread;
import static io.eddy.shm.Fixtures.random;
import static io.eddy.shm.Fixtures.readExactly;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.SocketException;
import java.net.SocketTimeoutException;
import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(120)
class ReaderWriterTest {
    private static final ShmOptions SMALL = ShmOptions.DEFAULT.withRingSize(ShmOptions.MIN_RING_SIZE);

    @Test
    void nothingIsReadBeforeTheFlush() throws Exception {
        ShmSocket[] both = ShmSocket.pair(SMALL);
        ShmWriter writer = both[0].writer();
        ShmReader reader = both[1].reader();
        byte[] into = new byte[10];
        assertEquals(0, reader.read(into));
        assertEquals(3, writer.write(new byte[] {1, 2, 3}));
        assertEquals(2, writer.write(new byte[] {4, 5}));
        assertEquals(0, reader.read(into));
        writer.flush();
        assertEquals(5, reader.available());
        assertEquals(5, reader.read(into));
        assertArrayEquals(new byte[] {1, 2, 3, 4, 5, 0, 0, 0, 0, 0}, into);
        writer.flush();
        assertEquals(0, reader.read(into));
        both[0].close();
        assertEquals(-1, reader.read(into));
        assertEquals(-1, reader.read(into));
        both[1].close();
        assertThrows(SocketException.class, () -> reader.read(into));
        assertThrows(SocketException.class, () -> writer.write(into));
    }

    @Test
    void writesNothingAtTheLimitOfBytes() throws Exception {
        ShmSocket[] both = ShmSocket.pair(SMALL);
        ShmWriter writer = both[0].writer();
        ShmReader reader = both[1].reader();
        byte[] all = random(ShmOptions.MIN_RING_SIZE + 100, 1);
        assertEquals(ShmOptions.MIN_RING_SIZE, writer.write(all));
        assertEquals(0, writer.write(all));
        assertFalse(writer.room().hasRemaining());
        writer.flush();
        assertEquals(0, writer.write(all));
        byte[] got = new byte[100];
        assertEquals(100, reader.read(got));
        assertEquals(100, writer.write(all));
        both[0].close();
        both[1].close();
    }

    @Test
    void writesNothingAtTheLimitOfPackets() throws Exception {
        ShmSocket[] both = ShmSocket.pair(SMALL.withMaxPackets(3).withFirstPosition(Long.MAX_VALUE - 5));
        ShmWriter writer = both[0].writer();
        ShmReader reader = both[1].reader();
        for (int i = 0; i < 1000; ++i) {
            for (int packet = 0; packet < 3; ++packet) {
                assertEquals(2, writer.write(new byte[] {1, 2}));
                writer.flush();
            }
            assertEquals(0, writer.write(new byte[] {1, 2}));
            byte[] got = new byte[i % 2 == 0 ? 3 : 6];
            assertEquals(got.length, reader.read(got));
            assertEquals(2, writer.write(new byte[] {1, 2}));
            writer.flush();
            if (i % 2 == 1) {
                assertEquals(2, writer.write(new byte[] {1, 2}));
                writer.flush();
                assertEquals(2, writer.write(new byte[] {1, 2}));
                writer.flush();
            }
            assertEquals(0, writer.write(new byte[] {1, 2}));
            while (reader.read(new byte[100]) > 0) {
                // All of it.
            }
        }
        both[0].close();
        both[1].close();
    }

    @Test
    void peeksAndWritesInPlace() throws Exception {
        ShmSocket[] both = ShmSocket.pair(SMALL);
        ShmWriter writer = both[0].writer();
        ShmReader reader = both[1].reader();
        assertFalse(reader.peek().hasRemaining());
        int count = 0;
        for (int i = 0; i < 100; ++i) {
            ByteBuffer room = writer.room();
            assertEquals(ShmOptions.MIN_RING_SIZE, room.remaining());
            for (int k = 0; k < 5000; ++k) {
                room.putInt(count++);
            }
            writer.append(20_000);
            writer.flush();
            ByteBuffer seen = reader.peek();
            assertSame(seen, reader.peek());
            assertEquals(20_000, seen.remaining());
            assertTrue(seen.isReadOnly());
            for (int k = count - 5000; k < count; ++k) {
                assertEquals(k, seen.getInt());
            }
            assertThrows(IllegalArgumentException.class, () -> reader.consume(20_001));
            reader.consume(20_000);
        }
        assertThrows(IllegalArgumentException.class, () -> writer.append(ShmOptions.MIN_RING_SIZE + 1));
        writer.finish();
        assertNull(reader.peek());
        both[0].close();
        both[1].close();
    }

    @Test
    void aViewIsASegment() throws Exception {
        Assumptions.assumeTrue(Runtime.version().feature() >= 22, "java.lang.foreign is there from JDK 22 on");
        ShmSocket[] both = ShmSocket.pair(SMALL);
        both[0].writer().write(new byte[12]);
        both[0].writer().flush();
        Class<?> segment = Class.forName("java.lang.foreign.MemorySegment");
        Object made = segment.getMethod("ofBuffer", Buffer.class).invoke(null, both[1].reader().peek());
        assertEquals(12L, segment.getMethod("byteSize").invoke(made));
        assertEquals(true, segment.getMethod("isNative").invoke(made));
        both[0].close();
        both[1].close();
    }

    @Test
    void viewsOutliveTheConnection() throws Exception {
        ShmSocket[] both = ShmSocket.pair(SMALL);
        both[0].writer().write(new byte[] {7, 8});
        both[0].writer().flush();
        ByteBuffer seen = both[1].reader().peek();
        both[0].close();
        both[1].close();
        System.gc();
        assertEquals(7, seen.get());
        assertEquals(8, seen.get());
    }

    @Test
    void waitsForBytesAndForRoom() throws Exception {
        ShmSocket[] both = ShmSocket.pair(SMALL);
        ShmWriter writer = both[0].writer();
        ShmReader reader = both[1].reader();
        assertThrows(SocketTimeoutException.class, () -> reader.await(1_000_000));
        CompletableFuture<byte[]> got = inThread(() -> {
            byte[] all = new byte[1_000_000];
            int size = 0;
            try {
                while (reader.await()) {
                    size += reader.read(all, size, all.length - size);
                }
            } finally {
                // A reader that has failed leaves no writer waiting for room.
                both[1].close();
            }
            assertEquals(all.length, size);
            return all;
        });
        byte[] sent = random(1_000_000, 4);
        try {
            for (int done = 0; done < sent.length;) {
                int part = writer.write(sent, done, Math.min(333, sent.length - done));
                writer.flush();
                done += part;
                if (part == 0) {
                    writer.await();
                }
            }
            writer.finish();
        } catch (SocketException gone) {
            // The reader's failure is the cause.
            get(got);
            throw gone;
        }
        assertArrayEquals(sent, get(got));
        both[0].close();
        both[1].close();
    }

    @Test
    void aWaitForRoomFlushesARingThatIsFull() throws Exception {
        ShmSocket[] both = ShmSocket.pair(SMALL);
        ShmWriter writer = both[0].writer();
        byte[] sent = random(both[0].getSendBufferSize(), 4);
        assertEquals(sent.length, writer.write(sent));
        assertEquals(0, writer.write(sent));
        CompletableFuture<Integer> written = inThread(() -> {
            writer.await();
            return writer.write(sent);
        });
        try {
            assertArrayEquals(sent, get(inThread(() -> readExactly(both[1].getInputStream(), sent.length))));
            assertTrue(get(written) > 0);
        } finally {
            both[0].close();
            both[1].close();
        }
    }

    @Test
    void buffersOfBothKinds() throws Exception {
        ShmSocket[] both = ShmSocket.pair(SMALL);
        for (ByteBuffer each : new ByteBuffer[] {ByteBuffer.allocate(100), ByteBuffer.allocateDirect(100)}) {
            each.position(10).limit(60);
            each.duplicate().put(random(50, 2));
            assertEquals(50, both[0].writer().write(each));
            assertEquals(60, each.position());
            both[0].writer().flush();
            each.clear().position(30);
            assertEquals(50, both[1].reader().read(each));
            assertEquals(80, each.position());
            byte[] got = new byte[50];
            each.position(30).get(got);
            assertArrayEquals(random(50, 2), got);
        }
        both[0].close();
        both[1].close();
    }
}
