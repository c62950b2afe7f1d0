// Listeners after errors that are no peer's fault: of memory, threads and descriptors.
package io.eddy.shm;

import static io.eddy.shm.Fixtures.eventually;
import static io.eddy.shm.Fixtures.get;
import static io.eddy.shm.Fixtures.inThread;
import static io.eddy.shm.Fixtures.name;
import static io.eddy.shm.Fixtures.random;
import static io.eddy.shm.Fixtures.readExactly;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.net.ConnectException;
import java.net.Socket;
import java.net.SocketException;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

@Timeout(180)
class ListenerTest {
    private static final int LARGEST = ShmOptions.MAX_RING_SIZE;
    /** Without spinning, so that wake-ups are those of the sockets' thread. */
    private static final ShmOptions BY_SOCKET =
            ShmOptions.DEFAULT.withDoorbell(ShmOptions.Doorbell.SOCKET).withWaiting(ShmOptions.Waiting.SLEEP);
    /** A handshake that ends since the machine is busy would be one failure more. */
    private static final ShmOptions PATIENT = ShmOptions.DEFAULT.withHandshakeTimeout(Duration.ofSeconds(Fixtures.DEADLINE_S));

    @AfterEach
    void noMoreErrors() {
        Faults.injected = null;
        Descriptors.canRefuse = true;
    }

    private static void echo(Socket peer) throws IOException {
        try (peer) {
            byte[] buffer = new byte[10_000];
            for (int size; (size = peer.getInputStream().read(buffer)) >= 0;) {
                peer.getOutputStream().write(buffer, 0, size);
            }
        }
    }

    /** Accepts for ever, as servers do: an IOException of accept() is no reason to end. */
    private static ShmServerSocket echoing(String path, ShmOptions options) throws IOException {
        ShmServerSocket made = new ShmServerSocket(path, options);
        inThread(() -> {
            while (!made.isClosed()) {
                try {
                    Socket peer = made.accept();
                    inThread(() -> {
                        echo(peer);
                        return null;
                    });
                } catch (IOException | Error error) {
                    // Of the heap; and what it leaves of classes whose initialization it has ended.
                    LockSupport.parkNanos(1_000_000);
                }
            }
            return null;
        });
        return made;
    }

    private static void assertEchoes(String path, ShmOptions options) throws IOException {
        try (ShmSocket client = new ShmSocket(path, options)) {
            byte[] sent = random(1000, 3);
            client.getOutputStream().write(sent);
            assertArrayEquals(sent, readExactly(client.getInputStream(), sent.length));
        }
    }

    private static void assertEchoes(String path) throws IOException {
        assertEchoes(path, PATIENT);
    }

    @Test
    void theLargestRingIsServed() throws Exception {
        try (ShmServerSocket first = echoing(name(), PATIENT);
                ShmServerSocket second = echoing(name(), PATIENT.withRingSize(LARGEST))) {
            String[] paths = {first.getLocalSocketAddress().toString(), second.getLocalSocketAddress().toString()};
            for (String each : paths) {
                assertEchoes(each, PATIENT.withRingSize(LARGEST));
                assertEchoes(each, PATIENT.withRingSize(LARGEST).withFirstPosition(LARGEST - 300));
                assertEchoes(each);
            }
            assertEquals(0, first.failures() + second.failures());
        }
    }

    /** No buffer reaches the last bytes of its second mapping. */
    @Test
    void theLargestRingIsUsedToItsLastByte() throws Exception {
        // Nearly all of its pages are published without having been written.
        WrittenPages.limitTo(LARGEST);
        try {
            useLargestRing();
        } finally {
            WrittenPages.limitTo(WrittenPages.SMALL_RING);
        }
    }

    private static void useLargestRing() throws Exception {
        ShmSocket[] both = ShmSocket.pair(ShmOptions.DEFAULT.withRingSize(LARGEST).withFirstPosition(LARGEST - 1));
        ShmWriter writer = both[0].writer();
        ShmReader reader = both[1].reader();
        long written = 0;
        long read = 0;
        int rounds = 0;
        for (int room; (room = writer.room().remaining()) > 0; ++rounds) {
            // Its pages are not touched but for the last one.
            writer.room().put(writer.room().limit() - 1, (byte) 7);
            writer.append(room);
            written += room;
        }
        writer.flush();
        assertEquals(LARGEST, written);
        assertEquals(2, rounds);
        for (ByteBuffer bytes; (bytes = reader.peek()).hasRemaining();) {
            assertEquals(7, bytes.get(bytes.limit() - 1));
            read += bytes.remaining();
            reader.consume(bytes.remaining());
        }
        assertEquals(LARGEST, read);
        byte[] sent = random(100_000, 5);
        CompletableFuture<byte[]> got = inThread(() -> readExactly(both[1].getInputStream(), sent.length));
        both[0].getOutputStream().write(sent);
        assertArrayEquals(sent, get(got));
        both[0].close();
        both[1].close();
    }

    static Stream<Arguments> errorsOfHandshakes() {
        List<Supplier<Throwable>> errors = List.of(() -> new OutOfMemoryError("injected"),
                () -> new IllegalStateException("injected"), () -> new StackOverflowError("injected"));
        return Stream.of("begin", "step", "eddy-shm-handshakes")
                .flatMap(place -> errors.stream().map(error -> Arguments.of(place, error)));
    }

    private static void inject(String where, int times, Supplier<Throwable> error) {
        AtomicInteger left = new AtomicInteger(times);
        Faults.injected = place -> {
            if (place.equals(where) && left.getAndDecrement() > 0) {
                Throwable thrown = error.get();
                if (thrown instanceof Error) {
                    throw (Error) thrown;
                }
                throw (RuntimeException) thrown;
            }
        };
    }

    @ParameterizedTest
    @MethodSource("errorsOfHandshakes")
    void anErrorInAHandshakeEndsThatHandshake(String place, Supplier<Throwable> error) throws Exception {
        try (ShmServerSocket first = echoing(name(), PATIENT); ShmServerSocket second = echoing(name(), PATIENT)) {
            String path = first.getLocalSocketAddress().toString();
            assertEchoes(path);
            eventually("the connection has ended", () -> noneIsOpen(path));
            long before = Fixtures.resources();
            int times = 5;
            inject(place, times, error);
            int failed = 0;
            for (int i = 0; i < times; ++i) {
                try {
                    assertEchoes(path);
                } catch (IOException dropped) {
                    ++failed;
                }
            }
            // The thread's own place may be the listener's turn, which comes again.
            assertTrue(failed == times || place.startsWith("eddy"), failed + " failed");
            assertEquals(failed, first.failures());
            Faults.injected = null;
            assertEchoes(path);
            assertEchoes(second.getLocalSocketAddress().toString());
            eventually("all is closed and unmapped", () -> Fixtures.resources() <= before);
        }
    }

    @SuppressWarnings("unchecked")
    private static <T extends Throwable> void throwUnchecked(Throwable error) throws T {
        throw (T) error;
    }

    /** Keeps the warnings of all listeners, as long as it is open. */
    private static final class Warnings extends Handler implements AutoCloseable {
        final List<LogRecord> records = new CopyOnWriteArrayList<>();
        private final Logger logger = Logger.getLogger("io.eddy.shm");

        Warnings() {
            logger.addHandler(this);
        }

        @Override
        public void publish(LogRecord each) {
            if (each.getLevel() == Level.WARNING) {
                records.add(each);
            }
        }

        @Override
        public void flush() {}

        @Override
        public void close() {
            logger.removeHandler(this);
        }
    }

    /** Within an OutOfMemoryError the message could cost the program the classes of its loggers. */
    @Test
    void anErrorOfMemoryIsLoggedOnceThereIsMemory() throws Exception {
        try (Warnings warnings = new Warnings(); ShmServerSocket server = echoing(name(), PATIENT)) {
            String path = server.getLocalSocketAddress().toString();
            inject("step", 1, () -> new OutOfMemoryError("injected"));
            assertThrows(IOException.class, () -> assertEchoes(path));
            assertEquals(0, warnings.records.size());
            assertEchoes(path);
            eventually("the warning", () -> warnings.records.size() == 1);
            assertEquals("injected", warnings.records.get(0).getThrown().getCause().getMessage());
        }
    }

    @Test
    void anErrorOfTheSystemInAHandshakeIsCountedAndLogged() throws Exception {
        try (Warnings warnings = new Warnings(); ShmServerSocket server = echoing(name(), PATIENT)) {
            String path = server.getLocalSocketAddress().toString();
            AtomicInteger left = new AtomicInteger(3);
            Faults.injected = at -> {
                if (at.equals("step") && left.getAndDecrement() > 0) {
                    ListenerTest.<RuntimeException>throwUnchecked(new SocketException("mmap: injected"));
                }
            };
            for (int i = 1; i <= 3; ++i) {
                assertThrows(IOException.class, () -> assertEchoes(path));
                assertEquals(i, server.failures());
            }
            assertEchoes(path);
            assertEquals(1, warnings.records.size());
            assertEquals("mmap: injected", warnings.records.get(0).getThrown().getMessage());
        }
    }

    /** accept() throws once the descriptors have run out, and not when there are some again. */
    @Test
    void anErrorOfTheSystemIsForgottenOnceAConnectionComes() throws Exception {
        try (ShmServerSocket server = new ShmServerSocket(name(), PATIENT)) {
            String path = server.getLocalSocketAddress().toString();
            AtomicBoolean isShort = new AtomicBoolean(true);
            Faults.injected = at -> {
                if (at.equals("watch") && isShort.get()) {
                    ListenerTest.<RuntimeException>throwUnchecked(new SocketException("epoll_ctl: injected"));
                }
            };
            for (int i = 1; i <= 4; ++i) {
                // It waits for its HELLO.
                int waiting = Native.socket();
                assertEquals(0, Native.connect(waiting, new ShmSocketAddress(path).name()));
                long failures = i;
                eventually("the end of the handshake", () -> server.failures() == failures);
                Native.close(waiting);
                if (i == 3) {
                    assertThrows(SocketException.class, server::accept);
                }
            }
            isShort.set(false);
            try (ShmSocket client = new ShmSocket(path, PATIENT); Socket peer = server.accept()) {
                client.getOutputStream().write(1);
                assertEquals(1, peer.getInputStream().read());
            }
        }
    }

    private static void drop(String path, List<Socket> accepted) throws Exception {
        ShmServerSocket dropped = new ShmServerSocket(path);
        CompletableFuture<Socket> accepting = inThread(dropped::accept);
        accepted.add(new ShmSocket(path));
        accepted.add(get(accepting));
    }

    /** As of a ServerSocket: the garbage collector closes it. What it accepted goes on. */
    @Test
    void aListenerThatWasDroppedIsClosed(@TempDir Path folder) throws Exception {
        Path file = folder.resolve("socket");
        for (String path : new String[] {name(), file.toString()}) {
            List<Socket> accepted = new ArrayList<>();
            drop(path, accepted);
            eventually("a connect that is refused", () -> {
                System.gc();
                try {
                    new ShmSocket(path).close();
                    return false;
                } catch (ConnectException refused) {
                    return true;
                } catch (IOException closedMeanwhile) {
                    return false;
                }
            });
            accepted.get(0).getOutputStream().write(1);
            assertEquals(1, accepted.get(1).getInputStream().read());
            for (Socket each : accepted) {
                each.close();
            }
        }
        eventually("the end of the file", () -> !Files.exists(file));
    }

    /** A listener that a thread waits for is in use. */
    @Test
    void aListenerInAcceptIsNotDropped() throws Exception {
        String path = name();
        CompletableFuture<Socket> accepting = inThread(() -> new ShmServerSocket(path, PATIENT).accept());
        eventually("a listener", () -> Files.readString(Path.of("/proc/net/unix")).contains(path));
        for (int i = 0; i < 5; ++i) {
            System.gc();
            Thread.sleep(5);
        }
        try (ShmSocket client = new ShmSocket(path, PATIENT); Socket peer = get(accepting)) {
            client.getOutputStream().write(1);
            assertEquals(1, peer.getInputStream().read());
        }
    }

    /** A process's main: what a program reads where its JVM denies native access, the first time and later. */
    public static final class Denied {
        public static void main(String[] arguments) {
            for (int i = 0; i < 2; ++i) {
                System.out.println(assertThrows(IOException.class, () -> new ShmServerSocket(name())).getMessage());
                System.out.println(assertThrows(IOException.class, () -> new ShmSocket(name())).getMessage());
                System.out.println(assertThrows(IOException.class, () -> new ShmServerSocket(0)).getMessage());
            }
        }
    }

    @Test
    void withoutNativeAccessTheErrorSaysSo() throws Exception {
        Assumptions.assumeTrue(Runtime.version().feature() >= 24, "native access cannot be denied here");
        Process process = new ProcessBuilder(Fixtures.javaCommand(List.of("--illegal-native-access=deny"), Denied.class))
                .redirectErrorStream(true).start();
        List<String> said = process.inputReader().lines().toList();
        assertEquals(0, process.waitFor(), said.toString());
        assertEquals(6, said.size(), said.toString());
        assertTrue(said.stream().allMatch(line -> line.contains("--enable-native-access=ALL-UNNAMED")), said.toString());
    }

    @Test
    void socketsThatLingerHoldUpNoHandshake() throws Exception {
        byte[] hello = new Hello(Layout.FEATURE_MEMORY, Layout.DOORBELL_SOCKET, ShmOptions.MIN_RING_SIZE, 0).encode();
        byte[][][] attempts = {{{}, hello}, {new byte[Layout.HELLO_SIZE], {1}}};
        try (ShmServerSocket first = echoing(name(), PATIENT); ShmServerSocket second = echoing(name(), PATIENT)) {
            ShmSocketAddress address = (ShmSocketAddress) first.getLocalSocketAddress();
            for (int i = 0; i < attempts.length; ++i) {
                int client = Native.socket();
                try (LingeringSocket passed = new LingeringSocket()) {
                    assertEquals(0, Native.connect(client, address.name()));
                    Native.send(client, attempts[i][0], 0, attempts[i][0].length);
                    int sent = passed.pass(client, attempts[i][1]);
                    // The listener may have refused the first message by then.
                    assertTrue(sent > 0 || i > 0, "error " + -sent);
                    long failures = i + 1;
                    eventually("the end of the handshake", () -> first.failures() == failures);
                    assertEchoes(address.path(), PATIENT);
                    assertEchoes(second.getLocalSocketAddress().toString(), PATIENT);
                } finally {
                    Native.close(client);
                }
            }
        }
    }

    /** With the kernel's refusal of descriptors, and without. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aSocketThatLingersInADoorbellHoldsUpNoConnection(boolean canRefuse) throws Exception {
        Descriptors.canRefuse = canRefuse;
        Socket[] lucky = Fixtures.connected(BY_SOCKET);
        Socket[] struck = Fixtures.connected(BY_SOCKET);
        try (LingeringSocket passed = new LingeringSocket()) {
            int sent = passed.pass(descriptorOf(struck[0]), new byte[] {1});
            assertEquals(Descriptors.canRefuse ? -Errors.EPERM : 1, sent);
            for (Socket[] each : List.of(struck, lucky)) {
                CompletableFuture<Integer> read = inThread(() -> each[1].getInputStream().read());
                each[0].getOutputStream().write(3);
                assertEquals(3, get(read));
            }
        }
        for (Socket each : List.of(lucky[0], lucky[1], struck[0], struck[1])) {
            each.close();
        }
    }

    private static boolean noneIsOpen(String path) throws IOException {
        try (Stream<String> lines = Files.lines(Path.of("/proc/net/unix"))) {
            // The listener itself has state 01.
            return lines.filter(line -> line.endsWith(" " + path) && line.contains(" 03 ")).count() == 0;
        }
    }

    private static void holdHandshakes(CountDownLatch until) {
        Faults.injected = place -> {
            if (place.equals("eddy-shm-handshakes")) {
                try {
                    until.await();
                } catch (InterruptedException none) {
                    Thread.currentThread().interrupt();
                }
            }
        };
    }

    @Test
    void connectionsAreAcceptedInTheOrderOfTheirConnects() throws Exception {
        byte[] hello = new Hello(0, Layout.DOORBELL_SOCKET, 0, 0).encode();
        int count = 100;
        int[] clients = new int[count];
        Arrays.fill(clients, -1);
        CountDownLatch isOver = new CountDownLatch(1);
        try (ShmServerSocket server = new ShmServerSocket(name(), PATIENT)) {
            holdHandshakes(isOver);
            for (int i = 0; i < count; ++i) {
                clients[i] = Native.socket();
                assertEquals(0, Native.connect(clients[i], ((ShmSocketAddress) server.getLocalSocketAddress()).name()));
                byte[] sent = Arrays.copyOf(hello, hello.length + 1);
                sent[hello.length] = (byte) i;
                assertEquals(sent.length, Native.send(clients[i], sent, 0, sent.length));
            }
            isOver.countDown();
            for (int i = 0; i < count; ++i) {
                try (Socket peer = server.accept()) {
                    assertEquals(i, peer.getInputStream().read());
                }
            }
        } finally {
            isOver.countDown();
            for (int each : clients) {
                Native.close(each);
            }
        }
    }

    /** As many as those of a listener in C++ find, while the thread of the handshakes has no time. */
    @Test
    void aBurstOfClientsFindsRoom() throws Exception {
        int most = Integer.parseInt(Threads.contentOf("/proc/sys/net/core/somaxconn").trim());
        Assumptions.assumeTrue(most >= 4096, "the kernel's limit is " + most);
        CountDownLatch isOver = new CountDownLatch(1);
        try (ShmServerSocket server = echoing(name(), PATIENT)) {
            ShmSocketAddress address = (ShmSocketAddress) server.getLocalSocketAddress();
            holdHandshakes(isOver);
            int connected = 0;
            for (; connected < 2000; ++connected) {
                int client = Native.socket();
                int outcome = Native.connect(client, address.name());
                Native.close(client);
                if (outcome != 0) {
                    break;
                }
            }
            assertEquals(2000, connected);
            isOver.countDown();
            assertEchoes(address.path(), PATIENT);
        } finally {
            isOver.countDown();
        }
    }

    @Test
    void clientsThatStallKeepNoOtherOut() throws Exception {
        ShmOptions patient = ShmOptions.DEFAULT.withHandshakeTimeout(Duration.ofHours(1));
        try (ShmServerSocket server = echoing(name(), patient)) {
            ShmSocketAddress address = (ShmSocketAddress) server.getLocalSocketAddress();
            int[] stalled = new int[2 * Acceptor.MOST_WAITING];
            for (int i = 0; i < stalled.length; ++i) {
                stalled[i] = Native.socket();
                assertEquals(0, Native.connect(stalled[i], address.name()));
            }
            for (int i = 0; i < 10; ++i) {
                assertEchoes(address.path(), ShmOptions.DEFAULT.withHandshakeTimeout(Duration.ofSeconds(Fixtures.DEADLINE_S)));
            }
            assertTrue(server.failures() >= Acceptor.MOST_WAITING, server.failures() + " were given up");
            for (int each : stalled) {
                Native.close(each);
            }
        }
    }

    @Test
    void anErrorOnTheThreadOfConnectionsEndsThatConnection() throws Exception {
        Socket[] lucky = Fixtures.connected(BY_SOCKET);
        Socket[] struck = Fixtures.connected(BY_SOCKET);
        CompletableFuture<Integer> reading = inThread(() -> struck[1].getInputStream().read());
        CompletableFuture<Integer> others = inThread(() -> lucky[1].getInputStream().read());
        inject("eddy-shm-connections", 1, () -> new OutOfMemoryError("injected"));
        // Its peer signals without bytes until the reader ends.
        Native.signal(descriptorOf(struck[0]));
        Exception ended = assertThrows(Exception.class, () -> get(reading));
        assertTrue(ended.getCause() instanceof SocketException, ended.toString());
        lucky[0].getOutputStream().write(3);
        assertEquals(3, get(others));
        for (Socket each : List.of(lucky[0], lucky[1], struck[0], struck[1])) {
            each.close();
        }
        Socket[] later = Fixtures.connected(BY_SOCKET);
        CompletableFuture<Integer> read = inThread(() -> later[1].getInputStream().read());
        later[0].getOutputStream().write(4);
        assertEquals(4, get(read));
        later[0].close();
        later[1].close();
    }

    private static int descriptorOf(Socket socket) throws ReflectiveOperationException {
        var connection = ShmSocket.class.getDeclaredField("connection");
        connection.setAccessible(true);
        var wire = Connection.class.getDeclaredField("wire");
        wire.setAccessible(true);
        var fd = Wire.class.getDeclaredField("fd");
        fd.setAccessible(true);
        return (int) fd.get(wire.get(connection.get(socket)));
    }

    @Test
    void aSelectorWakesAfterTheThreadsWereInterrupted() throws Exception {
        ShmChannel[] both = ShmChannel.pair(ShmOptions.DEFAULT);
        try (Selector selector = Selector.open()) {
            both[1].configureBlocking(false);
            both[1].selectable().register(selector, SelectionKey.OP_READ);
            assertEquals(0, both[1].read(ByteBuffer.allocate(10)));
            for (int i = 0; i < 100; ++i) {
                Thread.getAllStackTraces().keySet().stream().filter(each -> each.getName().startsWith("eddy-shm"))
                        .forEach(Thread::interrupt);
                both[0].write(ByteBuffer.wrap(new byte[] {1}));
                ByteBuffer into = ByteBuffer.allocate(10);
                while (into.position() == 0) {
                    assertTrue(selector.select(Fixtures.DEADLINE_S * 1000) > 0);
                    selector.selectedKeys().clear();
                    assertTrue(both[1].read(into) >= 0);
                }
                assertEquals(0, both[1].read(into));
            }
        }
        both[0].close();
        both[1].close();
    }

    @Test
    void aLimitLongerThanTheClockCountsIsNone() throws Exception {
        ShmOptions options = ShmOptions.DEFAULT.withHandshakeTimeout(Duration.ofSeconds(Long.MAX_VALUE));
        try (ShmServerSocket server = echoing(name(), options)) {
            assertEchoes(server.getLocalSocketAddress().toString(), options);
        }
    }

    /** A process's main: two listeners that echo, in a JVM that lacks something; what, its first argument says. */
    public static final class Short {
        public static void main(String[] arguments) throws Exception {
            String what = arguments[0];
            if (what.equals("threads")) {
                failToStartThreads();
            }
            List<ByteBuffer> taken = new ArrayList<>();
            if (what.equals("direct memory")) {
                takeDirectMemory(taken);
            }
            ShmServerSocket first = echoing(arguments[1], ShmOptions.DEFAULT);
            ShmServerSocket second = echoing(arguments[2], ShmOptions.DEFAULT);
            if (what.equals("slots")) {
                inject("slots", 1, () -> new OutOfMemoryError("injected"));
            }
            System.out.println("listening");
            if (what.equals("heap")) {
                AtomicBoolean isOver = new AtomicBoolean();
                Thread filling = new Thread(() -> fillHeap(isOver));
                filling.start();
                System.in.read();
                isOver.set(true);
                filling.join();
                System.out.println("memory is free");
            }
            // Until the test ends it.
            System.in.read();
            System.out.println(taken.size() + first.failures() + second.failures());
        }

        /** The first thread of the library cannot start; the caller gets that. */
        private static void failToStartThreads() throws IOException {
            inject("thread", 1, () -> new OutOfMemoryError("unable to create native thread"));
            String path = name();
            assertThrows(OutOfMemoryError.class, () -> new ShmServerSocket(path));
            new ShmServerSocket(path).close();
        }

        private static void takeDirectMemory(List<ByteBuffer> into) {
            // Each size at most a few times, as the last attempt takes half a second.
            for (int size : new int[] {1 << 20, 1 << 12, 1}) {
                try {
                    for (;;) {
                        into.add(ByteBuffer.allocateDirect(size));
                    }
                } catch (OutOfMemoryError full) {
                    // With the next smaller pieces.
                }
            }
        }

        /** Again and again, up to the last bytes. */
        private static void fillHeap(AtomicBoolean isOver) {
            while (!isOver.get()) {
                Object[] chain = null;
                try {
                    while (!isOver.get()) {
                        chain = new Object[] {chain, new byte[100]};
                    }
                } catch (OutOfMemoryError full) {
                    chain = null;
                }
                LockSupport.parkNanos(1_000_000);
            }
        }
    }

    private static final class ShortOf implements AutoCloseable {
        final String[] paths = {name(), name()};
        final BufferedReader said;
        private final Process process;

        ShortOf(String what, String... options) throws Exception {
            // Its warnings say what was injected.
            process = new ProcessBuilder(Fixtures.javaCommand(List.of(options), Short.class, what, paths[0], paths[1]))
                    .redirectError(ProcessBuilder.Redirect.DISCARD).start();
            said = process.inputReader();
            assertEquals("listening", said.readLine());
        }

        void tell() throws IOException {
            process.getOutputStream().write('\n');
            process.getOutputStream().flush();
        }

        void assertBothListen() throws Exception {
            for (String path : paths) {
                eventually("a connection", () -> {
                    try {
                        assertEchoes(path, ShmOptions.DEFAULT);
                        return true;
                    } catch (IOException dropped) {
                        return false;
                    }
                });
            }
        }

        @Override
        public void close() throws Exception {
            process.destroyForcibly().waitFor();
        }
    }

    @Test
    void aThreadThatDoesNotStartIsStartedByTheNextListener() throws Exception {
        try (ShortOf threads = new ShortOf("threads")) {
            threads.assertBothListen();
        }
    }

    @Test
    void aTableThatCouldNotGrowGrowsLater() throws Exception {
        try (ShortOf slots = new ShortOf("slots")) {
            List<ShmSocket> many = new ArrayList<>();
            for (int i = 0; i < 100; ++i) {
                try {
                    many.add(new ShmSocket(slots.paths[0]));
                } catch (IOException dropped) {
                    // The one that the table would have grown for.
                }
            }
            assertTrue(many.size() >= 98, many.size() + " of 100");
            slots.assertBothListen();
            for (ShmSocket each : many) {
                each.close();
            }
        }
    }

    @Test
    void connectsWithoutDirectMemory() throws Exception {
        try (ShortOf memory = new ShortOf("direct memory", "-XX:MaxDirectMemorySize=4m")) {
            for (int i = 0; i < 20; ++i) {
                for (String each : memory.paths) {
                    assertEchoes(each);
                }
            }
        }
    }

    @Test
    void listensOnAfterTheHeapWasFull() throws Exception {
        try (ShortOf heap = new ShortOf("heap", "-Xmx16m", "-XX:+UseSerialGC")) {
            for (int i = 0; i < 60; ++i) {
                try {
                    ShmOptions options = ShmOptions.DEFAULT.withHandshakeTimeout(Duration.ofMillis(100));
                    new ShmSocket(heap.paths[i % 2], options).close();
                } catch (IOException dropped) {
                    // By a listener without memory.
                }
            }
            heap.tell();
            assertEquals("memory is free", heap.said.readLine());
            heap.assertBothListen();
        }
    }

    /** An OutOfMemoryError in the initialization of a class is one for good: it would end the listeners, too. */
    @Test
    void theFirstClientInitializesNoClassOfTheLibrary(@TempDir Path folder) throws Exception {
        Path log = folder.resolve("classes");
        try (ShortOf nothing = new ShortOf("nothing", "-Xlog:class+init=info:file=" + log)) {
            int before = Files.readAllLines(log).size();
            assertEchoes(nothing.paths[0]);
            List<String> later = Files.readAllLines(log);
            assertTrue(later.size() > before, "the log goes on");
            // A class without an initializer has no method.
            assertEquals(List.of(), later.subList(before, later.size()).stream()
                    .filter(line -> line.contains("Initializing 'io/eddy/shm/") && !line.contains("no method")).toList());
        }
    }

    /** A process's main: accepts, in a process with few descriptors. */
    public static final class FewDescriptors {
        public static void main(String[] arguments) throws Exception {
            try (ShmServerSocket server = new ShmServerSocket(arguments[0]); InputStream in = System.in) {
                System.out.println("listening");
                List<Socket> kept = new ArrayList<>();
                try {
                    for (;;) {
                        kept.add(server.accept());
                    }
                } catch (IOException full) {
                    System.out.println(full.getMessage());
                }
                in.read();
                for (Socket each : kept) {
                    each.close();
                }
                for (;;) {
                    try (Socket peer = server.accept()) {
                        peer.getOutputStream().write(peer.getInputStream().read());
                    } catch (IOException old) {
                        // Of connections from before.
                    }
                }
            }
        }
    }

    @Test
    void listensOnAfterDescriptorsHadRunOut() throws Exception {
        String path = name();
        List<String> command = new ArrayList<>(List.of("sh", "-c", "ulimit -n 100; exec \"$@\"", "sh"));
        command.addAll(Fixtures.javaCommand(List.of(), FewDescriptors.class, path));
        Process process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.DISCARD).start();
        try (BufferedReader said = process.inputReader()) {
            assertEquals("listening", said.readLine());
            List<ShmSocket> clients = new ArrayList<>();
            CompletableFuture<String> full = inThread(said::readLine);
            ShmOptions impatient = ShmOptions.DEFAULT.withHandshakeTimeout(Duration.ofSeconds(1));
            while (!full.isDone()) {
                try {
                    clients.add(new ShmSocket(path, impatient));
                } catch (IOException dropped) {
                    // There are no descriptors for it.
                }
            }
            assertNotNull(get(full));
            assertTrue(get(full).contains("Too many open files"), get(full));
            for (ShmSocket each : clients) {
                each.close();
            }
            process.getOutputStream().write('\n');
            process.getOutputStream().flush();
            eventually("a connection", () -> {
                try (ShmSocket client = new ShmSocket(path, impatient)) {
                    client.getOutputStream().write(9);
                    return client.getInputStream().read() == 9;
                } catch (IOException notYet) {
                    return false;
                }
            });
        } finally {
            process.destroyForcibly().waitFor();
        }
    }
}
