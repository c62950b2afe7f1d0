// Peers in other processes: C++ programs, and ones that die; and very many threads.
package io.eddy.shm;

import static io.eddy.shm.Fixtures.eventually;
import static io.eddy.shm.Fixtures.get;
import static io.eddy.shm.Fixtures.inThread;
import static io.eddy.shm.Fixtures.name;
import static io.eddy.shm.Fixtures.random;
import static io.eddy.shm.Fixtures.readExactly;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.ConnectException;
import java.net.Socket;
import java.net.SocketException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermission;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

@Timeout(180)
class ProcessTest {
    /** A process's main: echoes over one connection to a listener at a path. */
    public static final class Echo {
        public static void main(String[] arguments) throws IOException {
            try (ShmSocket socket = new ShmSocket(arguments[0])) {
                byte[] buffer = new byte[1000];
                for (int size; (size = socket.getInputStream().read(buffer)) >= 0;) {
                    socket.getOutputStream().write(buffer, 0, size);
                }
            }
        }
    }

    /** A process's main: greets a listener at a path, and exits while a thread of it spins for an answer. */
    public static final class Spins {
        public static void main(String[] arguments) throws Exception {
            ShmSocket socket = new ShmSocket(arguments[0], ShmOptions.DEFAULT.withWaiting(ShmOptions.Waiting.SPIN));
            CompletableFuture<Integer> reader = inThread(() -> {
                socket.getOutputStream().write(1);
                return socket.getInputStream().read();
            });
            // The peer's answer; it spins for the next one.
            get(reader);
            inThread(() -> socket.getInputStream().read());
            socket.getOutputStream().write(2);
            System.exit(0);
        }
    }

    private static String echoProgram() {
        String program = System.getProperty("eddy.echo", "");
        Assumptions.assumeFalse(program.isEmpty(), "the C++ program of examples/ is not built");
        return program;
    }

    private static Process echoServer(String path, String... launcher) throws Exception {
        List<String> command = new ArrayList<>(List.of(launcher));
        command.addAll(List.of(echoProgram(), path));
        Process server = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        assertEquals("listening\n", new String(server.getInputStream().readNBytes(10)));
        return server;
    }

    static Stream<ShmOptions> everyKind() {
        return SocketTest.everyKind();
    }

    @ParameterizedTest
    @MethodSource("everyKind")
    void talksToAServerInCpp(ShmOptions options) throws Exception {
        String name = name();
        Process server = echoServer(name);
        try (ShmSocket client = new ShmSocket(name, options)) {
            assertEquals(options.sharesMemory, client.sharesMemory());
            InputStream in = client.getInputStream();
            OutputStream out = client.getOutputStream();
            for (int i = 0; i < 3000; ++i) {
                out.write(new byte[] {(byte) i, 1, 2, 3});
                assertEquals((byte) i, readExactly(in, 4)[0]);
            }
            byte[] sent = random(3_000_000, 1);
            CompletableFuture<byte[]> got = inThread(() -> readExactly(in, sent.length));
            out.write(sent);
            assertArrayEquals(sent, get(got));
            client.shutdownOutput();
            assertEquals(-1, in.read());
        } finally {
            server.destroyForcibly().waitFor();
        }
    }

    @Test
    void aServerOfAnotherUserIsRefusedUnlessItIsNamed() throws Exception {
        Assumptions.assumeTrue(Native.user() == 0, "only root can start a program of another user");
        Assumptions.assumeTrue(othersMayRun(Path.of(echoProgram())), "another user may not run the build's programs");
        String name = name();
        Process server = echoServer(name, "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups");
        try {
            assertThrows(ConnectException.class, () -> new ShmSocket(name));
            try (ShmSocket client = new ShmSocket(name, ShmOptions.DEFAULT.withServerUsers(Set.of(65534)))) {
                client.getOutputStream().write(5);
                assertEquals(5, client.getInputStream().read());
            }
        } finally {
            server.destroyForcibly().waitFor();
        }
    }

    /** By the permissions of the file and the folders above it. */
    private static boolean othersMayRun(Path program) throws IOException {
        for (Path at = program.toRealPath(); at != null; at = at.getParent()) {
            if (!Files.getPosixFilePermissions(at).contains(PosixFilePermission.OTHERS_EXECUTE)) {
                return false;
            }
        }
        return true;
    }

    @Test
    void servesAClientInCpp() throws Exception {
        String name = name();
        try (ShmServerSocket server = new ShmServerSocket(name)) {
            Process client = new ProcessBuilder(echoProgram(), name, "hello from C++").start();
            try (Socket peer = server.accept()) {
                byte[] got = peer.getInputStream().readAllBytes();
                assertEquals("hello from C++", new String(got));
                peer.getOutputStream().write("hello from Java".getBytes());
            }
            assertEquals("hello from Java", new String(client.getInputStream().readAllBytes()));
            assertEquals(0, client.waitFor());
        }
    }

    @ParameterizedTest
    @MethodSource("everyKind")
    void aPeerThatDiesEndsReadersAndWriters(ShmOptions options) throws Exception {
        String name = name();
        Process server = echoServer(name);
        try (ShmSocket client = new ShmSocket(name, options); ShmSocket writing = new ShmSocket(name, options)) {
            client.getOutputStream().write(new byte[] {1, 2, 3});
            assertEquals(1, client.getInputStream().read());
            CompletableFuture<Integer> reader = inThread(() -> {
                client.getInputStream().readNBytes(2);
                return client.getInputStream().read();
            });
            // The server's echo is not read, so it stops to read.
            CompletableFuture<Void> writer = inThread(() -> {
                for (;;) {
                    writing.getOutputStream().write(new byte[1_000_000]);
                }
            });
            server.destroyForcibly().waitFor();
            ExecutionException died = assertThrows(ExecutionException.class, () -> get(writer));
            assertTrue(died.getCause() instanceof SocketException, died.toString());
            if (options.sharesMemory) {
                died = assertThrows(ExecutionException.class, () -> get(reader));
                assertTrue(died.getCause() instanceof SocketException, died.toString());
            }
        } finally {
            server.destroyForcibly().waitFor();
        }
    }

    @Test
    void aJvmThatIsKilledLeavesNothing() throws Exception {
        String name = name();
        try (ShmServerSocket server = new ShmServerSocket(name)) {
            Process client = Fixtures.java(Echo.class, name);
            Socket peer = server.accept();
            peer.getOutputStream().write(5);
            assertEquals(5, peer.getInputStream().read());
            long before = Fixtures.resources();
            client.destroyForcibly().waitFor();
            assertThrows(SocketException.class, () -> peer.getInputStream().read());
            peer.close();
            eventually("everything closed and unmapped", () -> Fixtures.resources() < before);
        }
    }

    @Test
    void aJvmExitsWhileBothSidesSpin() throws Exception {
        String name = name();
        ShmOptions options = ShmOptions.DEFAULT.withWaiting(ShmOptions.Waiting.SPIN);
        try (ShmServerSocket server = new ShmServerSocket(name, options)) {
            Process client = Fixtures.java(Spins.class, name);
            try (Socket peer = server.accept()) {
                assertEquals(1, peer.getInputStream().read());
                peer.getOutputStream().write(1);
                assertEquals(2, peer.getInputStream().read());
                assertThrows(SocketException.class, () -> peer.getInputStream().read());
                assertEquals(0, client.waitFor());
                assertThrows(SocketException.class, () -> peer.getOutputStream().write(1));
                assertThrows(SocketException.class, () -> peer.getInputStream().read());
            }
        }
    }

    @Test
    void tenThousandVirtualThreadsTalkAtOnce() throws Exception {
        Assumptions.assumeTrue(Runtime.version().feature() >= 21, "virtual threads are there from JDK 21 on");
        ExecutorService threads = (ExecutorService) Executors.class.getMethod("newVirtualThreadPerTaskExecutor").invoke(null);
        String name = name();
        // Each connection has eight descriptors' and mappings' worth; the limit of mappings is 65,530.
        int connections = 1000;
        int perConnection = 10;
        ShmOptions options = ShmOptions.DEFAULT.withRingSize(ShmOptions.MIN_RING_SIZE)
                .withDoorbell(ShmOptions.Doorbell.SOCKET).withHandshakeTimeout(java.time.Duration.ofSeconds(60));
        try (ShmServerSocket server = new ShmServerSocket(name, options)) {
            threads.submit(() -> {
                for (;;) {
                    Socket peer = server.accept();
                    threads.submit(() -> {
                        byte[] buffer = new byte[100];
                        try (peer) {
                            for (int size; (size = peer.getInputStream().read(buffer)) >= 0;) {
                                peer.getOutputStream().write(buffer, 0, size);
                            }
                        }
                        return null;
                    });
                }
            });
            List<Future<Integer>> replies = new ArrayList<>();
            for (int i = 0; i < connections; ++i) {
                ShmSocket client = threads.submit(() -> new ShmSocket(name, options))
                        .get(Fixtures.DEADLINE_S, TimeUnit.SECONDS);
                List<Future<Integer>> its = new ArrayList<>();
                for (int k = 0; k < perConnection; ++k) {
                    its.add(threads.submit(() -> {
                        client.getOutputStream().write(7);
                        return client.getInputStream().read();
                    }));
                }
                replies.addAll(its);
                replies.add(threads.submit(() -> {
                    for (Future<Integer> each : its) {
                        each.get();
                    }
                    client.close();
                    return 7;
                }));
            }
            for (Future<Integer> each : replies) {
                assertEquals(7, each.get(Fixtures.DEADLINE_S, TimeUnit.SECONDS));
            }
        }
    }

    @Test
    void aVirtualThreadMayUseAFutexConnection() throws Exception {
        Assumptions.assumeTrue(Runtime.version().feature() >= 21, "virtual threads are there from JDK 21 on");
        ExecutorService threads = (ExecutorService) Executors.class.getMethod("newVirtualThreadPerTaskExecutor").invoke(null);
        ShmSocket[] both = ShmSocket.pair(ShmOptions.DEFAULT.withDoorbell(ShmOptions.Doorbell.FUTEX)
                .withWaiting(ShmOptions.Waiting.SLEEP));
        Future<Integer> read = threads.submit(() -> both[0].getInputStream().read());
        Future<Integer> other = threads.submit(() -> both[1].getInputStream().read());
        both[1].getOutputStream().write(3);
        assertEquals(3, read.get(Fixtures.DEADLINE_S, TimeUnit.SECONDS));
        both[1].close();
        assertThrows(ExecutionException.class, () -> other.get(Fixtures.DEADLINE_S, TimeUnit.SECONDS));
        both[0].close();
    }
}
