// Peers that break the protocol, and HELLOs.
package io.eddy.shm;

import static io.eddy.shm.Fixtures.get;
import static io.eddy.shm.Fixtures.inThread;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.EOFException;
import java.io.IOException;
import java.net.ProtocolException;
import java.net.SocketException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(120)
class HostileTest {
    private static final int RING = ShmOptions.MIN_RING_SIZE;
    private static final int ALL_SEALS = 0x1 | 0x2 | 0x4 | 0x10;

    /** The exchange with a peer that sends this message and descriptor, and then finishes. */
    private static void exchange(byte[] message, int descriptor) throws IOException {
        int[] fds = new int[2];
        assertEquals(0, Native.socketPair(fds));
        Handshake own = new Handshake(Handshake.Side.SERVER, fds[0], ShmOptions.DEFAULT, Layout.DOORBELL_SOCKET);
        try {
            if (descriptor >= 0) {
                Native.sendDescriptor(fds[1], message, descriptor);
            } else {
                Native.send(fds[1], message, 0, message.length);
            }
            Native.shutdown(fds[1], 1);
            assertEquals(Handshake.Next.DONE, own.step());
        } finally {
            own.discard();
            Native.close(fds[0]);
            Native.close(fds[1]);
        }
    }

    private static byte[] hello() {
        return new Hello(Layout.FEATURE_MEMORY, Layout.DOORBELL_SOCKET, RING, 0).encode();
    }

    private static int memory(long size, int seals) {
        int file = Native.memoryFile(size);
        assertTrue(file >= 0);
        if (seals != 0) {
            assertEquals(0, Native.addSeals(file, seals));
        }
        return file;
    }

    @Test
    void badFirstMessagesAreRefused() throws Exception {
        int good = memory(Layout.HEADER_SIZE + RING, ALL_SEALS);
        exchange(hello(), good);
        assertThrows(EOFException.class, () -> exchange(new byte[0], -1));
        assertThrows(EOFException.class, () -> exchange(Arrays.copyOf(hello(), 31), good));
        assertThrows(ProtocolException.class, () -> exchange("GET / HTTP/1.1\r\nHost: example\r\n\r\n".getBytes(), -1));
        assertThrows(ProtocolException.class, () -> exchange(hello(), -1));
        assertThrows(ProtocolException.class, () -> exchange(new Hello(0, 0, RING, 0).encode(), good));
        assertThrows(ProtocolException.class,
                () -> exchange(new Hello(1, 0, Layout.DEFAULT_RING, 0).encode(), good));
        assertThrows(ProtocolException.class, () -> exchange(new Hello(1, 2, RING, 0).encode(), good));
        assertThrows(ProtocolException.class, () -> exchange(new Hello(1, 0, RING + 1, 0).encode(), good));
        byte[] version = hello();
        version[Layout.HELLO_VERSION] = 2;
        assertThrows(ProtocolException.class, () -> exchange(version, good));
        Native.close(good);
    }

    @Test
    void memoryThatCouldShrinkIsRefused() throws Exception {
        for (int missing : new int[] {0x2, 0x4, 0x10}) {
            int file = memory(Layout.HEADER_SIZE + RING, ALL_SEALS & ~missing);
            assertThrows(ProtocolException.class, () -> exchange(hello(), file));
            Native.close(file);
        }
        int unsealed = memory(Layout.HEADER_SIZE + RING, 0);
        assertThrows(ProtocolException.class, () -> exchange(hello(), unsealed));
        Native.close(unsealed);
        int truncated = memory(Layout.HEADER_SIZE + RING - 4096, ALL_SEALS);
        assertThrows(ProtocolException.class, () -> exchange(hello(), truncated));
        Native.close(truncated);
        int socket = Native.socket();
        assertThrows(ProtocolException.class, () -> exchange(hello(), socket));
        Native.close(socket);
    }

    /** A connection, and the peer's memory, to be written at will. */
    private static final class Hostile {
        final ShmSocket socket;
        final Memory words;
        final int fd;

        Hostile() throws IOException {
            this(ShmOptions.DEFAULT);
        }

        Hostile(ShmOptions options) throws IOException {
            int[] fds = new int[2];
            assertEquals(0, Native.socketPair(fds));
            fd = fds[1];
            Handshake own = new Handshake(Handshake.Side.CLIENT, fds[0], options, Layout.DOORBELL_FUTEX);
            Handshake other = new Handshake(Handshake.Side.SERVER, fd, options, Layout.DOORBELL_SOCKET);
            own.step();
            other.step();
            own.step();
            socket = new ShmSocket(own.connection(), null, options);
            words = other.own;
        }

        void close() throws IOException {
            socket.close();
            Native.close(fd);
        }
    }

    @Test
    void indicesOutOfRangeResetTheConnection() throws Exception {
        for (long head : new long[] {Layout.DEFAULT_RING + 1, -1, Long.MIN_VALUE}) {
            Hostile peer = new Hostile();
            peer.words.setRelease(Layout.HEAD, head);
            assertThrows(SocketException.class, () -> peer.socket.getInputStream().read());
            peer.close();
        }
        for (long tail : new long[] {1, -1, Long.MAX_VALUE}) {
            Hostile peer = new Hostile();
            peer.words.setRelease(Layout.TAIL, tail);
            assertThrows(SocketException.class,
                    () -> peer.socket.getOutputStream().write(new byte[2 * Layout.DEFAULT_RING]));
            peer.close();
        }
        Hostile back = new Hostile();
        back.words.setRelease(Layout.HEAD, 10);
        assertEquals(5, back.socket.getInputStream().read(new byte[5]));
        back.words.setRelease(Layout.HEAD, 7);
        assertEquals(5, back.socket.getInputStream().read(new byte[5]));
        assertThrows(SocketException.class, () -> back.socket.getInputStream().read());
        back.close();
        Hostile end = new Hostile();
        end.words.setRelease(Layout.END, 100);
        assertThrows(SocketException.class, () -> end.socket.getInputStream().read());
        end.close();
    }

    @Test
    void packetsOutOfRangeResetTheConnection() throws Exception {
        for (long end : new long[] {0, 11, -1, Long.MIN_VALUE}) {
            Hostile peer = new Hostile(ShmOptions.DEFAULT.withPackets(true));
            peer.words.setRelease(Layout.packetEnd(0), end);
            peer.words.setRelease(Layout.HEAD, 10);
            assertThrows(SocketException.class, () -> peer.socket.getInputStream().read());
            peer.close();
        }
        Hostile changed = new Hostile(ShmOptions.DEFAULT.withPackets(true));
        changed.words.setRelease(Layout.packetEnd(0), 10);
        changed.words.setRelease(Layout.HEAD, 10);
        assertEquals(4, changed.socket.getInputStream().read(new byte[4]));
        // An end that was read once stays.
        changed.words.setRelease(Layout.packetEnd(0), 2);
        assertEquals(6, changed.socket.getInputStream().read(new byte[100]));
        changed.close();
    }

    @Test
    void randomIndicesDoNoHarm() throws Exception {
        Random dice = new Random(1);
        int[] words = {Layout.HEAD, Layout.TAIL, Layout.END, Layout.READER, Layout.WRITER & ~7, Layout.CPU};
        for (int round = 0; round < 200; ++round) {
            Hostile peer = new Hostile();
            CompletableFuture<Void> user = inThread(() -> {
                try {
                    peer.socket.setSoTimeout(50);
                    for (int i = 0; i < 50; ++i) {
                        peer.socket.getOutputStream().write(new byte[100]);
                        peer.socket.getInputStream().read(new byte[1000]);
                    }
                } catch (IOException expected) {
                    // The connection was reset.
                }
                return null;
            });
            for (int i = 0; i < 100; ++i) {
                long value = dice.nextInt(3) == 0 ? dice.nextLong() : dice.nextInt(2 * Layout.DEFAULT_RING);
                peer.words.setRelease(words[dice.nextInt(words.length)], value);
            }
            get(user);
            peer.close();
        }
    }

    @Test
    void bytesOfADoorbellThatNothingWaitsForAreDropped() throws Exception {
        Hostile peer = new Hostile();
        for (int i = 0; i < 2000; ++i) {
            Native.signal(peer.fd);
        }
        peer.words.put(0, new byte[] {42}, 0, 1);
        peer.words.setRelease(Layout.HEAD, 1);
        assertEquals(42, peer.socket.getInputStream().read());
        Native.shutdown(peer.fd, 2);
        assertThrows(SocketException.class, () -> peer.socket.getInputStream().read());
        peer.close();
    }

    /** Vectors that other implementations check theirs against. */
    @Test
    void helloHasTheBytesOfTheVectors() throws Exception {
        String file = System.getProperty("eddy.vectors");
        int count = 0;
        for (String line : Files.readAllLines(Path.of(file))) {
            if (line.isBlank() || line.startsWith("#")) {
                continue;
            }
            String[] parts = line.trim().split("\\s+");
            byte[] bytes = HexFormat.of().parseHex(parts[5]);
            ++count;
            if (!parts[0].equals("ok")) {
                assertThrows(ProtocolException.class, () -> Hello.decode(bytes), line);
                continue;
            }
            Hello expected = new Hello(Integer.parseUnsignedInt(parts[1]), Integer.parseUnsignedInt(parts[2]),
                    Long.parseUnsignedLong(parts[3]), Long.parseUnsignedLong(parts[4]));
            assertEquals(expected, Hello.decode(bytes), line);
            assertArrayEquals(bytes, expected.encode(), line);
        }
        assertTrue(count >= 8);
    }

    @Test
    void offsetsAreThoseOfTheHeader() throws Exception {
        String header = Files.readString(Path.of(System.getProperty("eddy.layout")));
        String[][] same = {{"MAGIC", "0x4d485345u"}, {"FEATURE_PACKETS", "4u"}, {"PACKETS", "32768u"}, {"MOST_PACKETS", "4096u"}, {"HEAD", "128u"}, {"TAIL", "256u"}, {"READER", "384u"},
            {"WRITER", "388u"}, {"READER_BELL", "448u"}, {"WRITER_BELL", "452u"}, {"END", "512u"}, {"CPU", "640u"},
            {"HEADER_SIZE", "65536u"}, {"MIN_RING", "65536u"},
            {"FIRST_FREE_PORT", "49152u"}, {"LAST_FREE_PORT", "65535u"}};
        for (String[] each : same) {
            assertTrue(header.replace("\\\n", " ").matches("(?s).*#define EDDY_SHM_" + each[0] + "\\s+"
                    + each[1] + "\\b.*"), each[0]);
            long value = Long.decode(each[1].substring(0, each[1].length() - 1));
            var field = Layout.class.getDeclaredField(each[0]);
            assertEquals((int) value, field.getInt(null), each[0]);
        }
    }
}
