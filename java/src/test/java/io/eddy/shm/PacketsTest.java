// Packets as messages: reads that end where a flush did, on each kind of end.
package io.eddy.shm;

import static io.eddy.shm.Fixtures.awaitCall;
import static io.eddy.shm.Fixtures.eventually;
import static io.eddy.shm.Fixtures.get;
import static io.eddy.shm.Fixtures.inThread;
import static io.eddy.shm.Fixtures.name;
import static io.eddy.shm.Fixtures.random;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.Socket;
import java.net.SocketException;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.util.Arrays;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@Timeout(120)
class PacketsTest {
    private static final int RING = ShmOptions.MIN_RING_SIZE;
    private static final ShmOptions PACKETS = ShmOptions.DEFAULT.withRingSize(RING).withPackets(true);

    private static String text(byte[] bytes, int size) {
        return size < 0 ? "the end" : new String(bytes, 0, size);
    }

    private static String read(ShmReader from, int most) throws IOException {
        byte[] into = new byte[most];
        return text(into, from.read(into));
    }

    private static void write(ShmWriter to, String... packets) throws IOException {
        for (String each : packets) {
            assertEquals(each.length(), to.write(each.getBytes()));
            to.flush();
        }
    }

    @Test
    void eachReadEndsWithItsPacket() throws Exception {
        ShmSocket[] both = ShmSocket.pair(PACKETS);
        ShmReader reader = both[1].reader();
        write(both[0].writer(), "one", "two", "three");
        assertEquals(11, reader.available());
        assertEquals(3, reader.packetSize());
        assertEquals("one", read(reader, 100));
        assertEquals("two", read(reader, 3));
        assertEquals("th", read(reader, 2));
        assertEquals(3, reader.packetSize());
        write(both[0].writer(), "four");
        assertEquals("ree", read(reader, 100));
        assertEquals("four", read(reader, 100));
        assertEquals(0, reader.packetSize());
        assertEquals("", read(reader, 100));
        both[0].close();
        assertEquals("the end", read(reader, 100));
        both[1].close();
    }

    @Test
    void whatIsWrittenBeforeTheFlushIsOnePacket() throws Exception {
        ShmSocket[] both = ShmSocket.pair(PACKETS);
        ShmWriter writer = both[0].writer();
        assertEquals(2, writer.write("ab".getBytes()));
        assertEquals(2, writer.write(ByteBuffer.wrap("cd".getBytes())));
        writer.room().put((byte) 'e');
        writer.append(1);
        assertEquals(0, both[1].reader().packetSize());
        writer.flush();
        writer.flush();
        assertEquals("abcde", read(both[1].reader(), 100));
        assertEquals("", read(both[1].reader(), 100));
        both[0].close();
        both[1].close();
    }

    /** Packets of all sizes around a small ring, over the wrap of its end and of the positions. */
    @ParameterizedTest
    @ValueSource(longs = {0, Long.MAX_VALUE, Long.MAX_VALUE - RING})
    void packetsOfAllSizesStayApart(long firstPosition) throws Exception {
        ShmSocket[] both = ShmSocket.pair(PACKETS.withFirstPosition(firstPosition));
        Random sizes = new Random(5);
        int[] chosen = sizes.ints(20_000, 1, 2_000).toArray();
        chosen[10] = RING;
        chosen[11] = RING - 1;
        CompletableFuture<Void> sending = inThread(() -> {
            for (int i = 0; i < chosen.length; ++i) {
                byte[] packet = new byte[chosen[i]];
                Arrays.fill(packet, (byte) i);
                both[0].getOutputStream().write(packet);
            }
            both[0].shutdownOutput();
            return null;
        });
        InputStream in = both[1].getInputStream();
        byte[] into = new byte[RING];
        for (int i = 0; i < chosen.length; ++i) {
            int most = i % 3 == 0 ? Math.max(1, chosen[i] / 2) : RING;
            assertEquals(Math.min(most, chosen[i]), in.read(into, 0, most), "packet " + i);
            assertEquals((byte) i, into[0]);
            if (most < chosen[i]) {
                assertEquals(chosen[i] - most, in.read(into));
            }
        }
        assertEquals(-1, in.read());
        get(sending);
        both[0].close();
        both[1].close();
    }

    @Test
    void nothingIsWrittenAtTheLimitOfPackets() throws Exception {
        ShmSocket[] both = ShmSocket.pair(PACKETS);
        ShmWriter writer = both[0].writer();
        for (int i = 0; i < ShmOptions.MOST_KEPT_PACKETS; ++i) {
            write(writer, String.valueOf(i));
        }
        assertEquals(0, writer.write("no".getBytes()));
        assertEquals("0", read(both[1].reader(), 10));
        write(writer, "last");
        assertEquals(0, writer.write("no".getBytes()));
        for (int i = 1; i < ShmOptions.MOST_KEPT_PACKETS; ++i) {
            assertEquals(String.valueOf(i), read(both[1].reader(), 10));
        }
        assertEquals("last", read(both[1].reader(), 10));
        both[0].close();
        both[1].close();
    }

    @Test
    void aLowerLimitHoldsForPacketsThatWereReadInPart() throws Exception {
        ShmSocket[] both = ShmSocket.pair(PACKETS.withMaxPackets(2));
        write(both[0].writer(), "one", "two");
        assertEquals(0, both[0].writer().write("3".getBytes()));
        assertEquals("on", read(both[1].reader(), 2));
        assertEquals(0, both[0].writer().write("3".getBytes()));
        assertEquals("e", read(both[1].reader(), 2));
        write(both[0].writer(), "3");
        assertEquals("two", read(both[1].reader(), 10));
        assertEquals("3", read(both[1].reader(), 10));
        both[0].close();
        both[1].close();
    }

    @Test
    void peekIsOfOnePacket() throws Exception {
        ShmSocket[] both = ShmSocket.pair(PACKETS);
        ShmReader reader = both[1].reader();
        write(both[0].writer(), "first", "second");
        ByteBuffer seen = reader.peek();
        assertEquals(5, seen.remaining());
        assertThrows(IllegalArgumentException.class, () -> reader.consume(6));
        reader.consume(2);
        assertEquals(3, reader.peek().remaining());
        reader.consume(3);
        assertEquals(6, reader.peek().remaining());
        assertThrows(IllegalArgumentException.class, () -> reader.consume(7));
        reader.consume(6);
        assertFalse(reader.peek().hasRemaining());
        both[0].close();
        assertNull(reader.peek());
        both[1].close();
    }

    /** A write of a stream is one packet, also where it has to wait for room; it is not seen before it is whole. */
    @Test
    void aWriteThatWaitsForRoomIsOnePacket() throws Exception {
        ShmSocket[] both = ShmSocket.pair(PACKETS);
        byte[] first = random(RING - 100, 1);
        byte[] second = random(RING, 2);
        both[0].getOutputStream().write(first);
        CompletableFuture<Void> writing = inThread(() -> {
            both[0].getOutputStream().write(second);
            return null;
        });
        ShmReader reader = both[1].reader();
        byte[] into = new byte[RING];
        assertEquals(100, reader.read(into, 0, 100));
        assertEquals(RING - 200, reader.read(into));
        assertTrue(reader.await());
        assertEquals(RING, reader.read(into));
        assertArrayEquals(second, into);
        get(writing);
        both[0].close();
        both[1].close();
    }

    @Test
    void aPacketThatNeverHasRoomIsRefused() throws Exception {
        ShmSocket[] both = ShmSocket.pair(PACKETS);
        OutputStream out = both[0].getOutputStream();
        assertThrows(SocketException.class, () -> out.write(new byte[RING + 1]));
        write(both[0].writer(), "fits");
        assertEquals(2, both[0].writer().write("ab".getBytes()));
        assertThrows(SocketException.class, () -> out.write(new byte[RING - 1]));
        out.write("cd".getBytes());
        assertEquals("fits", read(both[1].reader(), 100));
        assertEquals("abcd", read(both[1].reader(), 100));
        both[0].close();
        both[1].close();
        ShmChannel[] channels = ShmChannel.pair(PACKETS);
        assertThrows(SocketException.class, () -> channels[0].write(ByteBuffer.allocate(RING + 1)));
        channels[0].close();
        assertEquals(-1, channels[1].read(ByteBuffer.allocate(1)));
        channels[1].close();
    }

    /** One that close() cuts off in its wait for room leaves no part behind. */
    @Test
    void aPacketThatIsCutOffIsNotSeen() throws Exception {
        ShmSocket[] both = ShmSocket.pair(PACKETS);
        both[0].getOutputStream().write(random(RING - 1, 1));
        Thread[] writer = new Thread[1];
        CompletableFuture<Void> writing = new CompletableFuture<>();
        writer[0] = new Thread(() -> {
            try {
                both[0].getOutputStream().write(new byte[2]);
                writing.complete(null);
            } catch (Throwable error) {
                writing.completeExceptionally(error);
            }
        });
        writer[0].setDaemon(true);
        writer[0].start();
        awaitCall(writer[0], "waitForRoom");
        both[0].close();
        assertThrows(Exception.class, () -> get(writing));
        byte[] into = new byte[2 * RING];
        assertEquals(RING - 1, both[1].getInputStream().read(into));
        assertEquals(-1, both[1].getInputStream().read(into));
        both[1].close();
    }

    @Test
    void channelsScatterAndGatherOnePacket() throws Exception {
        ShmChannel[] both = ShmChannel.pair(PACKETS);
        ByteBuffer[] parts = {ByteBuffer.wrap("ab".getBytes()), ByteBuffer.wrap("cde".getBytes())};
        assertEquals(5, both[0].write(parts));
        assertEquals(1, both[0].write(ByteBuffer.wrap("f".getBytes())));
        ByteBuffer[] room = {ByteBuffer.allocate(4), ByteBuffer.allocate(1), ByteBuffer.allocate(4)};
        assertEquals(5, both[1].read(room));
        assertEquals(0, room[2].position());
        assertEquals(1, both[1].read(room[2]));
        both[0].close();
        both[1].close();
    }

    /** All or nothing, and the selector reports when it may be all. */
    @Test
    void aChannelThatDoesNotBlockWritesWholePackets() throws Exception {
        ShmChannel[] both = ShmChannel.pair(PACKETS);
        both[0].configureBlocking(false);
        both[1].configureBlocking(false);
        try (Selector selector = Selector.open()) {
            both[0].selectable().register(selector, SelectionKey.OP_READ);
            ByteBuffer packet = ByteBuffer.allocate(RING / 2 + 1);
            assertEquals(packet.capacity(), both[0].write(packet));
            assertEquals(0, both[0].write(packet.clear()));
            CompletableFuture<Integer> reading = inThread(() -> {
                ByteBuffer into = ByteBuffer.allocate(RING);
                eventually("two packets", () -> {
                    both[1].read(into.limit(Math.min(RING, into.position() + 1000)));
                    return into.position() == packet.capacity();
                });
                into.clear();
                eventually("the second packet", () -> both[1].read(into) > 0);
                return into.position();
            });
            while (both[0].write(packet) == 0) {
                assertTrue(selector.select(Fixtures.DEADLINE_S * 1000) > 0);
                selector.selectedKeys().clear();
            }
            assertEquals(packet.capacity(), get(reading));
        }
        both[0].close();
        both[1].close();
    }

    @Test
    void bothSidesKeepPacketsApartOrNone() throws Exception {
        String path = name();
        try (ShmServerSocket server = new ShmServerSocket(path, PACKETS)) {
            assertThrows(IOException.class, () -> new ShmSocket(path));
            eventually("a failure", () -> server.failures() == 1);
            CompletableFuture<Socket> accepted = inThread(server::accept);
            try (ShmSocket client = new ShmSocket(path, PACKETS); Socket peer = get(accepted)) {
                client.getOutputStream().write(new byte[3]);
                client.getOutputStream().write(new byte[2]);
                assertEquals(3, peer.getInputStream().read(new byte[9]));
                assertEquals(2, peer.getInputStream().read(new byte[9]));
            }
            assertThrows(IOException.class, () -> new ShmSocket(path, PACKETS.withSharedMemory(false)));
        }
        String streams = name();
        try (ShmServerSocket server = new ShmServerSocket(streams)) {
            IOException refusal = assertThrows(IOException.class, () -> new ShmSocket(streams, PACKETS));
            assertTrue(refusal.getMessage().contains("keep packets apart"), refusal.getMessage());
            server.accept().close();
            try (ShmSocket client = new ShmSocket(streams)) {
                assertTrue(client.sharesMemory());
            }
        }
        assertThrows(IOException.class, () -> ShmSocket.pair(PACKETS.withSharedMemory(false)));
    }
}
