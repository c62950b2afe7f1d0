// Pages of a peer's ring: those that were published without having been written are not read.
package io.eddy.shm;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.io.IOException;
import java.net.SocketException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@Timeout(120)
class WrittenPagesTest {
    private static final int RING = 4 * WrittenPages.SMALL_RING;
    private static final ShmOptions LARGE = ShmOptions.DEFAULT.withRingSize(RING);
    private static final int PART = 5000;
    private static final int ALL_SEALS = 0x1 | 0x2 | 0x4 | 0x10;

    @BeforeAll
    static void canCheck() {
        int file = Native.memoryFile(Native.pageSize());
        long pages = Native.existingPages(file, 0, Native.pageSize());
        Native.close(file);
        Assumptions.assumeTrue(pages == 0, "no cachestat(2), since Linux 6.5");
    }

    private static void write(Memory to, long from, long end) {
        for (long at = from; end - at > 0; at += PART) {
            byte[] bytes = new byte[(int) Math.min(PART, end - at)];
            Arrays.fill(bytes, (byte) 1);
            to.put((int) at & (RING - 1), bytes, 0, bytes.length);
        }
    }

    private static long pages(int file) {
        return Native.existingPages(file, 0, Layout.HEADER_SIZE + RING);
    }

    /** Also where the first page is that of the last bytes, too, and where the first bytes or the positions wrap. */
    @ParameterizedTest
    @ValueSource(longs = {0, 100, RING - 100, Long.MAX_VALUE - 5000})
    void areThoseOfTheBytesSoFar(long begin) throws IOException {
        int file = Native.memoryFile(Layout.HEADER_SIZE + RING);
        Memory own = Memory.map(file, RING);
        WrittenPages checked = new WrittenPages(file, begin, RING);
        long before = pages(file);
        assertFalse(checked.reach(begin + 1));
        assertFalse(checked.reach(begin + RING));
        assertEquals(before, pages(file), "the check allocates none");
        int twoPages = 2 * Native.pageSize();
        for (long end = begin; end - begin < RING;) {
            write(own, end, end + PART);
            end += PART;
            assertTrue(checked.reach(end));
            assertFalse(end + twoPages - begin < RING && checked.reach(end + twoPages));
        }
        assertTrue(checked.isDone());
        assertTrue(checked.reach(begin + 10L * RING));
        own.unmap();
    }

    @ParameterizedTest
    @ValueSource(longs = {0, 100, RING - 100, Long.MAX_VALUE - 5000})
    void mayBeWrittenAtOnce(long begin) throws IOException {
        int file = Native.memoryFile(Layout.HEADER_SIZE + RING);
        Memory own = Memory.map(file, RING);
        write(own, begin, begin + RING);
        WrittenPages checked = new WrittenPages(file, begin, RING);
        assertTrue(checked.reach(begin + RING));
        assertTrue(checked.isDone());
        own.unmap();
    }

    @Test
    void aConnectionEndsAtAPageThatWasNeverWritten() throws Exception {
        for (int written : new int[] {0, 1, Native.pageSize(), RING / 2}) {
            int file = Native.memoryFile(Layout.HEADER_SIZE + RING);
            Memory words = Memory.map(file, RING);
            assertEquals(0, Native.addSeals(file, ALL_SEALS));
            int[] fds = new int[2];
            assertEquals(0, Native.socketPair(fds));
            byte[] hello = new Hello(Layout.FEATURE_MEMORY, Layout.DOORBELL_SOCKET, RING, 0).encode();
            assertEquals(hello.length, Native.sendDescriptor(fds[1], hello, file));
            Handshake server = new Handshake(Handshake.Side.SERVER, fds[0], LARGE, Layout.DOORBELL_SOCKET);
            assertEquals(Handshake.Next.DONE, server.step());
            try (ShmSocket socket = new ShmSocket(server.connection(), null, LARGE)) {
                words.put(0, new byte[written], 0, written);
                words.setRelease(Layout.HEAD, written);
                assertArrayEquals(new byte[written], socket.getInputStream().readNBytes(written));
                words.setRelease(Layout.HEAD, RING);
                long before = pages(file);
                assertThrows(SocketException.class, () -> socket.getInputStream().read(new byte[RING]));
                assertThrows(SocketException.class, () -> socket.getInputStream().available());
                assertEquals(before, pages(file));
            }
            words.unmap();
            Native.close(file);
            Native.close(fds[1]);
        }
    }

    @ParameterizedTest
    @ValueSource(longs = {0, 100, RING - 100, Long.MAX_VALUE - 5000})
    void allThatAPeerWritesIsRead(long first) throws Exception {
        ShmSocket[] both = ShmSocket.pair(LARGE.withFirstPosition(first));
        for (int i = 0; i < 3 * RING / PART; ++i) {
            byte[] bytes = Fixtures.random(PART, i);
            both[0].getOutputStream().write(bytes);
            assertArrayEquals(bytes, both[1].getInputStream().readNBytes(PART));
        }
        both[0].close();
        both[1].close();
    }

    /** Numbers of the descriptors of memory files. */
    private static Set<String> memoryFiles() throws IOException {
        Set<String> found = new HashSet<>();
        for (String each : new File("/proc/self/fd").list()) {
            try {
                if (Files.readSymbolicLink(Path.of("/proc/self/fd", each)).toString().startsWith("/memfd:eddy-shm")) {
                    found.add(each);
                }
            } catch (NoSuchFileException closed) {
                // As that of the list itself.
            }
        }
        return found;
    }

    /** At the end of the first lap, or with the connection. */
    @Test
    void theDescriptorOfTheCheckIsClosed() throws Exception {
        Set<String> before = memoryFiles();
        ShmSocket[] both = ShmSocket.pair(LARGE);
        Set<String> own = memoryFiles();
        own.removeAll(before);
        assertEquals(2, own.size());
        byte[] lap = new byte[RING];
        both[0].getOutputStream().write(lap);
        assertArrayEquals(lap, both[1].getInputStream().readNBytes(RING));
        own.retainAll(memoryFiles());
        assertEquals(1, own.size());
        both[0].close();
        both[1].close();
        own.retainAll(memoryFiles());
        assertEquals(Set.of(), own);
    }
}
