// ShmSocket and ShmServerSocket as a Socket's user sees them.
package io.eddy.shm;

import static io.eddy.shm.Fixtures.connected;
import static io.eddy.shm.Fixtures.eventually;
import static io.eddy.shm.Fixtures.get;
import static io.eddy.shm.Fixtures.inThread;
import static io.eddy.shm.Fixtures.name;
import static io.eddy.shm.Fixtures.random;
import static io.eddy.shm.Fixtures.readExactly;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.eddy.example.Greeting;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.lang.module.ModuleDescriptor;
import java.lang.module.ModuleFinder;
import java.net.BindException;
import java.net.ConnectException;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketException;
import java.net.SocketTimeoutException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

@Timeout(120)
class SocketTest {
    /** Each way of waiting, and of carrying the bytes. */
    static Stream<ShmOptions> everyKind() {
        ShmOptions usual = ShmOptions.DEFAULT;
        return Stream.of(usual, usual.withWaiting(ShmOptions.Waiting.SLEEP), usual.withDoorbell(ShmOptions.Doorbell.SOCKET),
                usual.withDoorbell(ShmOptions.Doorbell.SOCKET).withWaiting(ShmOptions.Waiting.SLEEP),
                usual.withAsymmetricFence(true).withWaiting(ShmOptions.Waiting.SLEEP), usual.withSharedMemory(false),
                usual.withRingSize(ShmOptions.MIN_RING_SIZE).withMaxPackets(2));
    }

    private static void echo(Socket peer) throws IOException {
        try (peer) {
            InputStream in = peer.getInputStream();
            OutputStream out = peer.getOutputStream();
            byte[] buffer = new byte[10_000];
            for (int size; (size = in.read(buffer)) >= 0;) {
                out.write(buffer, 0, size);
            }
        }
    }

    @ParameterizedTest
    @MethodSource("everyKind")
    void carriesBytesThereAndBack(ShmOptions options) throws Exception {
        Socket[] both = connected(options);
        CompletableFuture<Void> server = inThread(() -> {
            echo(both[1]);
            return null;
        });
        try (Socket client = both[0]) {
            InputStream in = client.getInputStream();
            OutputStream out = client.getOutputStream();
            for (int size : new int[] {1, 4, 1000, 70_000}) {
                byte[] sent = random(size, size);
                CompletableFuture<byte[]> got = inThread(() -> readExactly(in, size));
                out.write(sent);
                assertArrayEquals(sent, get(got));
            }
            for (int i = 0; i < 2000; ++i) {
                out.write(i);
                assertEquals(i & 0xff, in.read());
            }
        }
        get(server);
    }

    @ParameterizedTest
    @MethodSource("everyKind")
    void writesMoreThanTheRingAndDeliversAllBeforeTheEnd(ShmOptions options) throws Exception {
        Socket[] both = connected(options);
        byte[] sent = random(5_000_000, 7);
        CompletableFuture<byte[]> got = inThread(() -> {
            try (Socket server = both[1]) {
                return server.getInputStream().readAllBytes();
            }
        });
        try (Socket client = both[0]) {
            client.getOutputStream().write(sent);
        }
        assertArrayEquals(sent, get(got));
    }

    @Test
    void deliversWhatWasWrittenBeforeClose() throws Exception {
        Socket[] both = connected(ShmOptions.DEFAULT);
        both[0].getOutputStream().write(random(100_000, 3));
        both[0].close();
        try (Socket server = both[1]) {
            InputStream in = server.getInputStream();
            assertArrayEquals(random(100_000, 3), in.readAllBytes());
            for (int i = 0; i < 3; ++i) {
                assertEquals(-1, in.read());
                assertEquals(-1, in.read(new byte[10]));
            }
            eventually("writing to a peer that has closed", () -> {
                try {
                    server.getOutputStream().write(1);
                    return false;
                } catch (SocketException expected) {
                    return true;
                }
            });
        }
    }

    @ParameterizedTest
    @MethodSource("everyKind")
    void halfCloses(ShmOptions options) throws Exception {
        Socket[] both = connected(options);
        try (Socket client = both[0]; Socket server = both[1]) {
            client.getOutputStream().write("question".getBytes());
            client.shutdownOutput();
            assertTrue(client.isOutputShutdown());
            assertThrows(SocketException.class, client::getOutputStream);
            assertArrayEquals("question".getBytes(), server.getInputStream().readAllBytes());
            server.getOutputStream().write("answer".getBytes());
            server.close();
            assertArrayEquals("answer".getBytes(), client.getInputStream().readAllBytes());
        }
    }

    @ParameterizedTest
    @MethodSource("everyKind")
    void inputThatWasShutDownIsAtItsEnd(ShmOptions options) throws Exception {
        Socket[] both = connected(options);
        try (Socket client = both[0]; Socket server = both[1]) {
            InputStream in = client.getInputStream();
            CompletableFuture<Integer> waiting = inThread(in::read);
            server.getOutputStream().write(5);
            assertEquals(5, get(waiting));
            client.shutdownInput();
            assertEquals(-1, in.read());
            client.getOutputStream().write(6);
            assertEquals(6, server.getInputStream().read());
        }
    }

    @Test
    void readsNothingAtOnce() throws Exception {
        Socket[] both = connected(ShmOptions.DEFAULT);
        try (Socket client = both[0]; Socket server = both[1]) {
            assertEquals(0, client.getInputStream().read(new byte[5], 5, 0));
            assertEquals(0, client.getInputStream().available());
            server.getOutputStream().write(new byte[42]);
            assertEquals(42, client.getInputStream().available());
            assertThrows(IndexOutOfBoundsException.class, () -> client.getInputStream().read(new byte[5], 3, 3));
        }
    }

    @ParameterizedTest
    @MethodSource("everyKind")
    void timesOut(ShmOptions options) throws Exception {
        Socket[] both = connected(options);
        try (Socket client = both[0]; Socket server = both[1]) {
            client.setSoTimeout(20);
            assertEquals(20, client.getSoTimeout());
            assertThrows(SocketTimeoutException.class, () -> client.getInputStream().read());
            server.getOutputStream().write(9);
            client.setSoTimeout(0);
            assertEquals(9, client.getInputStream().read());
        }
    }

    @ParameterizedTest
    @MethodSource("everyKind")
    void ownCloseEndsReadersAndWriters(ShmOptions options) throws Exception {
        for (int i = 0; i < 50; ++i) {
            Socket[] both = connected(options);
            CompletableFuture<Integer> reader = inThread(() -> both[0].getInputStream().read());
            CompletableFuture<Void> writer = inThread(() -> {
                both[0].getOutputStream().write(new byte[20_000_000]);
                return null;
            });
            if (i % 2 == 0) {
                Thread.sleep(3);
            }
            both[0].close();
            for (CompletableFuture<?> each : List.of(reader, writer)) {
                ExecutionException ended = assertThrows(ExecutionException.class, () -> get(each));
                // In its call, or before it has the stream.
                assertTrue(ended.getCause().getMessage().matches("Socket (is )?closed"), ended.toString());
            }
            assertThrows(SocketException.class, () -> both[0].getInputStream());
            both[0].close();
            both[1].close();
        }
    }

    @ParameterizedTest
    @MethodSource("everyKind")
    void interruptDoesNotEndAPlatformThreadsRead(ShmOptions options) throws Exception {
        Socket[] both = connected(options);
        try (Socket client = both[0]; Socket server = both[1]) {
            CompletableFuture<Thread> self = new CompletableFuture<>();
            CompletableFuture<Boolean> read = inThread(() -> {
                self.complete(Thread.currentThread());
                return client.getInputStream().read() == 3 && Thread.interrupted();
            });
            get(self).interrupt();
            server.getOutputStream().write(3);
            assertTrue(get(read));
        }
    }

    @ParameterizedTest
    @ValueSource(longs = {(1L << 31) - 100_000, (1L << 32) - 100_000, Long.MAX_VALUE - 100_000})
    void crossesEveryLimitOfItsCounters(long first) throws Exception {
        Socket[] both = connected(ShmOptions.DEFAULT.withFirstPosition(first).withMaxPackets(1000));
        CompletableFuture<Void> server = inThread(() -> {
            echo(both[1]);
            return null;
        });
        try (Socket client = both[0]) {
            for (int i = 0; i < 50; ++i) {
                byte[] sent = random(9_000, i);
                client.getOutputStream().write(sent);
                assertArrayEquals(sent, readExactly(client.getInputStream(), sent.length));
            }
        }
        get(server);
    }

    /** Each round trip is two wake-ups, and a lost one would end the test. */
    @ParameterizedTest
    @EnumSource(value = ShmOptions.Doorbell.class, names = {"FUTEX", "SOCKET"})
    void eachSendWakesAReaderThatSleeps(ShmOptions.Doorbell doorbell) throws Exception {
        Socket[] both = connected(ShmOptions.DEFAULT.withWaiting(ShmOptions.Waiting.SLEEP).withDoorbell(doorbell));
        CompletableFuture<Void> server = inThread(() -> {
            echo(both[1]);
            return null;
        });
        try (Socket client = both[0]) {
            for (int i = 0; i < 10_000; ++i) {
                client.getOutputStream().write(i);
                assertEquals(i & 0xff, client.getInputStream().read());
            }
        }
        get(server);
    }

    /** Less than a tenth of a millisecond each; with a pause of 45 ms in each, the test's time would not do. */
    @Test
    @Timeout(60)
    void connectsAndClosesWithoutPauses() throws Exception {
        String name = name();
        try (ShmServerSocket server = new ShmServerSocket(name)) {
            for (int i = 0; i < 2000; ++i) {
                new ShmSocket(name).close();
                server.accept().close();
            }
        }
    }

    @Test
    void greets() throws Exception {
        String name = name();
        CompletableFuture<Void> server = inThread(() -> {
            Greeting.serve(name);
            return null;
        });
        CompletableFuture<String> greeting = new CompletableFuture<>();
        eventually("a server that listens", () -> {
            try {
                return greeting.complete(Greeting.ask(name, "Eddy"));
            } catch (ConnectException early) {
                return false;
            }
        });
        assertEquals("hello, Eddy", get(greeting));
        get(server);
    }

    @Test
    void theListenersFileIsTheOwnersAlone(@TempDir Path folder) throws Exception {
        Path file = folder.resolve("sock");
        try (ShmServerSocket server = new ShmServerSocket(file.toString())) {
            assertEquals("rw-------", PosixFilePermissions.toString(Files.getPosixFilePermissions(file)));
            assertEquals(new ShmSocketAddress(file.toString()), server.getLocalSocketAddress());
            assertThrows(BindException.class, () -> new ShmServerSocket(file.toString()));
            new ShmSocket(file.toString()).close();
        }
        assertFalse(Files.exists(file));
        assertThrows(ConnectException.class, () -> new ShmSocket(file.toString()));
    }

    @Test
    void takesTheFileOfAListenerThatHasDied(@TempDir Path folder) throws Exception {
        String file = folder.resolve("sock").toString();
        int abandoned = Native.socket();
        assertEquals(0, Native.bind(abandoned, new ShmSocketAddress(file).name()));
        Native.close(abandoned);
        new ShmServerSocket(file).close();
        Files.writeString(Path.of(file), "no socket");
        assertThrows(BindException.class, () -> new ShmServerSocket(file));
        assertEquals("no socket", Files.readString(Path.of(file)));
    }

    @Test
    void acceptTimesOutAndEndsWithClose() throws Exception {
        ShmServerSocket server = new ShmServerSocket(name());
        server.setSoTimeout(10);
        assertThrows(SocketTimeoutException.class, server::accept);
        server.setSoTimeout(0);
        CompletableFuture<Socket> first = inThread(server::accept);
        CompletableFuture<Socket> second = inThread(server::accept);
        server.close();
        for (CompletableFuture<Socket> each : List.of(first, second)) {
            ExecutionException ended = assertThrows(ExecutionException.class, () -> get(each));
            assertTrue(ended.getCause() instanceof SocketException, ended.toString());
        }
        assertThrows(SocketException.class, server::accept);
    }

    @Test
    void clientsThatStallHoldUpNoOthers() throws Exception {
        String name = name();
        List<Integer> stalled = new ArrayList<>();
        ShmOptions options = ShmOptions.DEFAULT.withHandshakeTimeout(Duration.ofMillis(300));
        try (ShmServerSocket server = new ShmServerSocket(name, options)) {
            for (int i = 0; i < 50; ++i) {
                int fd = Native.socket();
                assertEquals(0, Native.connect(fd, new ShmSocketAddress(name).name()));
                stalled.add(fd);
            }
            CompletableFuture<Socket> accepted = inThread(server::accept);
            try (ShmSocket client = new ShmSocket(name); Socket peer = get(accepted)) {
                client.getOutputStream().write(1);
                assertEquals(1, peer.getInputStream().read());
            }
            eventually("the end of those that stall", () -> server.failures() >= 50);
            assertEquals(50, server.failures());
        }
        stalled.forEach(Native::close);
    }

    /**
     * One connection at a time: of handshakes under way at the limit, the listener ends some. The further clients have sent
     * theirs before there is room, so that a handshake is over as soon as it begins.
     */
    @Test
    void waitingConnectionsAreLimitedAndGoOnAfterwards() throws Exception {
        String name = name();
        int further = 20;
        try (ShmServerSocket server = new ShmServerSocket(name)) {
            List<ShmSocket> clients = new ArrayList<>();
            for (int i = 0; i < Acceptor.MOST_WAITING; ++i) {
                clients.add(new ShmSocket(name));
            }
            List<Handshake> waiting = new ArrayList<>();
            for (int i = 0; i < further; ++i) {
                int fd = Native.socket();
                assertEquals(0, Native.connect(fd, new ShmSocketAddress(name).name()));
                waiting.add(new Handshake(Handshake.Side.CLIENT, fd, ShmOptions.DEFAULT, Layout.DOORBELL_SOCKET));
                assertEquals(Handshake.Next.READABLE, waiting.get(i).step());
            }
            Thread.sleep(100);
            for (Handshake each : waiting) {
                assertEquals(Handshake.Next.READABLE, each.step());
            }
            for (int i = 0; i < Acceptor.MOST_WAITING + further; ++i) {
                server.accept().close();
            }
            for (Handshake each : waiting) {
                assertEquals(Handshake.Next.DONE, each.step());
                each.connection().close();
            }
            for (ShmSocket each : clients) {
                each.close();
            }
            assertEquals(0, server.failures());
        }
    }

    @Test
    void usersThatMayNotConnectAreRefused() throws Exception {
        String name = name();
        ShmOptions options = ShmOptions.DEFAULT.withAllowedUsers(Set.of(4_000_000));
        try (ShmServerSocket server = new ShmServerSocket(name, options)) {
            assertThrows(IOException.class, () -> new ShmSocket(name));
            eventually("the refusal is counted", () -> server.failures() == 1);
        }
    }

    @Test
    void serversOfUsersThatAreNotAllowedAreRefused() throws Exception {
        String name = name();
        ShmOptions others = ShmOptions.DEFAULT.withServerUsers(Set.of(4_000_000));
        try (ShmServerSocket server = new ShmServerSocket(name)) {
            ConnectException refused = assertThrows(ConnectException.class, () -> new ShmSocket(name, others));
            assertTrue(refused.getMessage().startsWith(name + ": Permission denied; a server of another user"),
                    refused.getMessage());
            assertThrows(ConnectException.class, () -> ShmChannel.connect(name, others));
            assertThrows(ConnectException.class, () -> new ShmSocketFactory(name + "?allow=4000000").createSocket("db", 1));
            // Nothing was sent to it.
            eventually("they hung up", () -> server.failures() == 3);
            ShmOptions own = ShmOptions.DEFAULT.withServerUsers(Set.of(4_000_000, Native.user()));
            new ShmSocket(name, own).close();
            server.accept().close();
            new ShmSocketFactory(name + "?allow=4000000," + Native.user()).createSocket("db", 1).close();
            server.accept().close();
        }
        for (String wrong : List.of("", "root", "1,", "-1")) {
            assertThrows(IllegalArgumentException.class, () -> new ShmSocketFactory("@name?allow=" + wrong), wrong);
        }
    }

    @Test
    void factoriesIgnoreHostsAndPorts() throws Exception {
        String name = name();
        try (ServerSocket server = new ShmServerSocketFactory(name).createServerSocket(1234)) {
            CompletableFuture<Void> served = inThread(() -> {
                echo(server.accept());
                echo(server.accept());
                return null;
            });
            ShmSocketFactory factory = new ShmSocketFactory(name);
            try (Socket client = factory.createSocket("db.example", 5432)) {
                client.getOutputStream().write(1);
                assertEquals(1, client.getInputStream().read());
            }
            try (Socket client = factory.createSocket()) {
                client.setTcpNoDelay(true);
                client.setKeepAlive(true);
                client.setReuseAddress(true);
                client.setSoLinger(true, 5);
                client.connect(InetSocketAddress.createUnresolved("db.example", 5432), 1000);
                assertTrue(client.isConnected() && client.isBound() && !client.isClosed());
                assertTrue(client.getInetAddress().isLoopbackAddress());
                client.getOutputStream().write(2);
                assertEquals(2, client.getInputStream().read());
            }
            get(served);
        }
    }

    @Test
    void unconnectedSocketsSaySo() throws Exception {
        ShmSocket socket = new ShmSocket();
        assertFalse(socket.isConnected());
        assertThrows(SocketException.class, socket::getInputStream);
        assertThrows(IllegalArgumentException.class, () -> socket.connect(new InetSocketAddress("127.0.0.1", 1)));
        socket.close();
        assertTrue(socket.isClosed());
        assertThrows(SocketException.class, () -> socket.connect(new ShmSocketAddress("@nothing")));
        assertThrows(ConnectException.class, () -> new ShmSocket("@eddy-test-nothing-listens"));
        assertThrows(IllegalArgumentException.class, () -> new ShmSocketAddress("x".repeat(108)));
        assertThrows(IllegalArgumentException.class, () -> ShmOptions.DEFAULT.withRingSize(70_000));
        assertThrows(IllegalArgumentException.class, () -> ShmOptions.DEFAULT.withMaxPackets(-1));
        assertThrows(IllegalArgumentException.class, () -> ShmOptions.DEFAULT.withFirstPosition(-1));
    }

    @Test
    void aPortIsAnAddress() throws Exception {
        try (ShmServerSocket server = new ShmServerSocket(0)) {
            int port = server.getLocalPort();
            assertTrue(port > 0);
            assertEquals(ShmSocketAddress.ofPort(port), server.getLocalSocketAddress());
            assertEquals("@eddy-shm-" + Native.user() + "-" + port, server.getLocalSocketAddress().toString());
            assertThrows(BindException.class, () -> new ShmServerSocket(port));
            try (ShmSocket client = new ShmSocket(port); Socket peer = server.accept()) {
                client.getOutputStream().write(5);
                assertEquals(5, peer.getInputStream().read());
                assertEquals(port, client.getPort());
                assertEquals(port, peer.getLocalPort());
                assertEquals(0, client.getLocalPort());
                assertEquals(0, peer.getPort());
            }
        }
        try (ShmServerSocket server = new ShmServerSocket(":0")) {
            String path = ":" + server.getLocalPort();
            assertTrue(server.getLocalPort() >= 49_152);
            try (ShmSocket client = new ShmSocket(path); ShmChannel channel = ShmChannel.connect(path)) {
                assertEquals(server.getLocalSocketAddress(), client.getRemoteSocketAddress());
                assertTrue(channel.isOpen());
            }
            // The names of the users are tried in turn.
            ShmOptions users = ShmOptions.DEFAULT.withServerUsers(Set.of(Native.user(), 4_000_000));
            new ShmSocket(path, users).close();
            Socket made = new ShmSocketFactory(path + "?allow=4000000," + Native.user()).createSocket("host", 1);
            assertEquals(server.getLocalPort(), made.getPort());
            made.close();
            assertThrows(BindException.class, () -> new ShmServerSocket(path));
            ShmOptions others = ShmOptions.DEFAULT.withServerUsers(Set.of(4_000_000));
            assertThrows(ConnectException.class, () -> new ShmSocket(path, others));
        }
        for (String wrong : List.of(":", ":x", ":65536", ":-1")) {
            assertThrows(IllegalArgumentException.class, () -> new ShmSocketAddress(wrong), wrong);
        }
        assertEquals(0, new ShmSocketAddress("@eddy-shm-0-65536").port());
        assertEquals(0, new ShmSocketAddress("@eddy-6379").port());
        assertThrows(IllegalArgumentException.class, () -> ShmSocketAddress.ofPort(0));
        assertThrows(IllegalArgumentException.class, () -> new ShmServerSocket(65_536));
        assertThrows(IllegalArgumentException.class, () -> new ShmSocket(-1));
    }

    @Test
    void theJarIsAModule() throws Exception {
        Path jar = Path.of(ShmSocket.class.getProtectionDomain().getCodeSource().getLocation().toURI());
        ModuleDescriptor found = ModuleFinder.of(jar).find("io.eddy.shm").orElseThrow().descriptor();
        assertFalse(found.isAutomatic());
        assertEquals(Set.of("io.eddy.shm"), found.exports().stream().map(ModuleDescriptor.Exports::source).collect(Collectors.toSet()));
        assertEquals(1, found.requires().size());
    }

    @Test
    void socketsWithoutANameHaveAnAddress() throws Exception {
        String name = name();
        try (ShmServerSocket server = new ShmServerSocket(name); ShmSocket client = new ShmSocket(name);
                Socket peer = server.accept()) {
            assertEquals(new ShmSocketAddress(name), client.getRemoteSocketAddress());
            assertEquals(new ShmSocketAddress(name), peer.getLocalSocketAddress());
            assertEquals("", client.getLocalSocketAddress().toString());
            assertEquals(client.getLocalSocketAddress(), peer.getRemoteSocketAddress());
            assertEquals("ShmSocket[" + name + "]", peer.toString());
            ShmSocket unconnected = new ShmSocket();
            assertThrows(IllegalArgumentException.class, () -> unconnected.connect(client.getLocalSocketAddress()));
        }
    }

    /** What was written before is read, and the reset behind it. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void closeWithoutLingeringIsAReset(boolean resets) throws Exception {
        Socket[] both = connected(ShmOptions.DEFAULT);
        both[0].setSoLinger(resets, 0);
        both[0].getOutputStream().write(new byte[10]);
        both[0].close();
        readExactly(both[1].getInputStream(), 10);
        if (resets) {
            assertThrows(SocketException.class, () -> both[1].getInputStream().read());
        } else {
            assertEquals(-1, both[1].getInputStream().read());
        }
        both[1].close();
    }

    @Test
    void leavesNothingBehind() throws Exception {
        connected(ShmOptions.DEFAULT)[0].close();
        String name = name();
        try (ShmServerSocket server = new ShmServerSocket(name)) {
            new ShmSocket(name).close();
            server.accept().close();
            System.gc();
            long before = Fixtures.resources();
            for (int i = 0; i < 500; ++i) {
                try (ShmSocket client = new ShmSocket(name); Socket peer = server.accept()) {
                    client.getOutputStream().write(i);
                    assertEquals(i & 0xff, peer.getInputStream().read());
                }
            }
            eventually("everything closed and unmapped", () -> Fixtures.resources() <= before + 4);
        }
    }

    @Test
    void threadsMayShareAStream() throws Exception {
        Socket[] both = connected(ShmOptions.DEFAULT);
        try (Socket client = both[0]; Socket server = both[1]) {
            List<CompletableFuture<Integer>> counts = new ArrayList<>();
            for (int i = 0; i < 4; ++i) {
                counts.add(inThread(() -> {
                    int got = 0;
                    byte[] buffer = new byte[100];
                    for (int size; (size = server.getInputStream().read(buffer)) >= 0;) {
                        got += size;
                    }
                    return got;
                }));
            }
            List<CompletableFuture<Void>> writers = new ArrayList<>();
            for (int i = 0; i < 4; ++i) {
                writers.add(inThread(() -> {
                    for (int round = 0; round < 500; ++round) {
                        client.getOutputStream().write(new byte[50]);
                    }
                    return null;
                }));
            }
            for (CompletableFuture<Void> each : writers) {
                get(each);
            }
            client.shutdownOutput();
            int all = 0;
            for (CompletableFuture<Integer> each : counts) {
                all += get(each);
            }
            assertEquals(4 * 500 * 50, all);
        }
    }
}
