// Limits at which a connection uses its socket: mappings, descriptors, and descriptors in flight.
package io.eddy.shm;

import static io.eddy.shm.Fixtures.name;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.net.Socket;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Each limit is that of a JVM of its own, where no other test has memory or descriptors. */
@Timeout(120)
class LimitsTest {
    private static final int NO_LIMIT = Integer.MAX_VALUE;
    /** Descriptors of a JVM that reaches its limit of them, or of those in flight. */
    private static final int FEW = 100;

    /** Runs a class's main, with so few descriptors; its output, once it has passed. */
    private static void assertPasses(Class<?> main) throws Exception {
        Process process = new ProcessBuilder(withFewDescriptors(Fixtures.javaCommand(List.of(), main))).redirectErrorStream(true).start();
        String said = new String(process.getInputStream().readAllBytes());
        assertEquals(0, process.waitFor(), said);
    }

    private static List<String> withFewDescriptors(List<String> command) {
        List<String> made = new ArrayList<>(List.of("sh", "-c", "ulimit -n " + FEW + "; exec \"$@\"", "sh"));
        made.addAll(command);
        return made;
    }

    /** Both sides of an exchange over a socket pair. */
    private static final class Both implements AutoCloseable {
        final Handshake client;
        final Handshake server;

        Both() {
            int[] fds = new int[2];
            assertEquals(0, Native.socketPair(fds));
            client = new Handshake(Handshake.Side.CLIENT, fds[0], ShmOptions.DEFAULT, Layout.DOORBELL_SOCKET);
            server = new Handshake(Handshake.Side.SERVER, fds[1], ShmOptions.DEFAULT, Layout.DOORBELL_SOCKET);
        }

        void sendClients() throws IOException {
            assertEquals(Handshake.Next.READABLE, client.step());
        }

        void answer() throws IOException {
            assertEquals(Handshake.Next.DONE, server.step());
        }

        /** The end: whether they share memory. */
        boolean share() throws IOException {
            assertEquals(Handshake.Next.DONE, client.step());
            Connection one = client.connection();
            Connection other = server.connection();
            assertEquals(one.sharesMemory(), other.sharesMemory());
            one.close();
            other.close();
            return one.sharesMemory();
        }

        /** Without a connection. */
        @Override
        public void close() {
            client.discard();
            server.discard();
            Native.close(client.fd);
            Native.close(server.fd);
        }
    }

    @Test
    void aServerAllocatesNothingBeforeTheClientsHello() throws Exception {
        Both both = new Both();
        assertEquals(Handshake.Next.READABLE, both.server.step());
        assertNull(both.server.own);
        both.sendClients();
        both.answer();
        assertTrue(both.share());
    }

    @Test
    void aServerAllocatesNothingForAClientWithoutMemory() throws Exception {
        int[] fds = new int[2];
        assertEquals(0, Native.socketPair(fds));
        byte[] hello = new Hello(0, Layout.DOORBELL_SOCKET, 0, 0).encode();
        assertEquals(hello.length, Native.send(fds[1], hello, 0, hello.length));
        Handshake server = new Handshake(Handshake.Side.SERVER, fds[0], ShmOptions.DEFAULT, Layout.DOORBELL_SOCKET);
        assertEquals(Handshake.Next.DONE, server.step());
        assertNull(server.own);
        Connection made = server.connection();
        assertFalse(made.sharesMemory());
        made.close();
        Native.close(fds[1]);
    }

    /** A process's main: exchanges while so many memories may be mapped. */
    public static final class Mappings {
        public static void main(String[] arguments) throws Exception {
            assertTrue(Mapping.mostMemories() > 1000, "a limit of " + Mapping.mostMemories());
            for (int round = 0; round < 3; ++round) {
                // The client's own, and its room for the server's; the server's of the client, and its own.
                for (int memories = 0; memories < 4; ++memories) {
                    assertFalse(share(memories), memories + " memories");
                }
                assertTrue(share(4), "nothing of what failed is counted");
            }
        }

        private static boolean share(int memories) throws IOException {
            Mapping.limitMemories(memories);
            Both both = new Both();
            try {
                both.sendClients();
                both.answer();
                return both.share();
            } catch (IOException refused) {
                both.close();
                throw refused;
            } finally {
                Mapping.limitMemories(NO_LIMIT);
            }
        }
    }

    @Test
    void sidesThatCanMapNoMemoryUseTheSocket() throws Exception {
        assertPasses(Mappings.class);
    }

    /** A process's main: a connection to itself, which echoes a byte. */
    public static final class Alone {
        public static void main(String[] arguments) throws Exception {
            String path = name();
            try (ShmServerSocket server = new ShmServerSocket(path); ShmSocket client = new ShmSocket(path);
                    Socket peer = server.accept()) {
                client.getOutputStream().write(7);
                peer.getOutputStream().write(peer.getInputStream().read());
                assertEquals(7, client.getInputStream().read());
                System.out.println(client.sharesMemory());
            }
        }
    }

    /** Runs a program to which memfd_create(2) is refused with an errno, by seccomp(2). */
    private static final String WITHOUT_MEMORY_FILES = """
            import ctypes, os, platform, struct, sys
            number = {"x86_64": 319, "aarch64": 279}[platform.machine()]
            steps = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (6, 0, 0, 0x50000 | int(sys.argv[1])), (6, 0, 0, 0x7fff0000)]
            code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
            class Filter(ctypes.Structure):
                _fields_ = [("length", ctypes.c_ushort), ("steps", ctypes.c_void_p)]
            libc = ctypes.CDLL(None)
            assert libc.prctl(38, 1, 0, 0, 0) == 0
            assert libc.prctl(22, 2, ctypes.byref(Filter(len(steps), ctypes.addressof(code))), 0, 0) == 0
            os.execv(sys.argv[2], sys.argv[2:])
            """;

    /** EPERM, or ENOSYS. */
    @ParameterizedTest
    @ValueSource(ints = {1, 38})
    void aProcessWithoutMemoryFilesUsesItsSocket(int errno) throws Exception {
        List<String> command = new ArrayList<>(List.of("python3", "-c", WITHOUT_MEMORY_FILES, String.valueOf(errno)));
        command.addAll(Fixtures.javaCommand(List.of(), Alone.class));
        Process process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        String said = new String(process.getInputStream().readAllBytes());
        assertEquals(0, process.waitFor());
        assertEquals("false", said.trim());
    }

    /** A process's main: a listener of two connections that share memory, which echoes a byte until the peer's end. */
    public static final class TwoConnections {
        public static void main(String[] arguments) throws Exception {
            Mapping.limitMemories(4);
            try (ShmServerSocket server = new ShmServerSocket(arguments[0])) {
                System.out.println("listening");
                for (;;) {
                    Socket peer = server.accept();
                    Fixtures.inThread(() -> {
                        try (peer) {
                            for (int got; (got = peer.getInputStream().read()) >= 0;) {
                                peer.getOutputStream().write(got);
                            }
                        }
                        return null;
                    });
                }
            }
        }
    }

    private static boolean sharesAndEchoes(ShmSocket client) throws IOException {
        client.getOutputStream().write(7);
        assertEquals(7, client.getInputStream().read());
        return client.sharesMemory();
    }

    @Test
    void connectionsBeyondTheLimitOfMappingsUseTheirSocket() throws Exception {
        String path = name();
        Process server = Fixtures.java(TwoConnections.class, path);
        try (BufferedReader said = server.inputReader()) {
            assertEquals("listening", said.readLine());
            List<ShmSocket> clients = new ArrayList<>();
            for (int i = 0; i < 6; ++i) {
                clients.add(new ShmSocket(path));
                assertEquals(i < 2, sharesAndEchoes(clients.get(i)), "connection " + i);
            }
            clients.get(0).close();
            Fixtures.eventually("a connection that shares memory", () -> {
                try (ShmSocket next = new ShmSocket(path)) {
                    return sharesAndEchoes(next);
                }
            });
            for (ShmSocket each : clients) {
                each.close();
            }
        } finally {
            server.destroyForcibly().waitFor();
        }
    }

    /** A process's main: exchanges of which one step has no descriptors left. */
    public static final class Descriptors {
        public static void main(String[] arguments) throws Exception {
            // Classes that are loaded later need descriptors.
            Errors.of("none", 0);
            steps(false);
            steps(true);
        }

        private static void steps(boolean isFull) throws IOException {
            Both sending = new Both();
            List<Integer> taken = take(isFull);
            sending.sendClients();
            sending.answer();
            give(taken);
            assertEquals(!isFull, sending.share());

            Both receiving = new Both();
            receiving.sendClients();
            taken = take(isFull);
            receiving.answer();
            give(taken);
            assertEquals(!isFull, receiving.share());

            try (Both refusing = new Both()) {
                refusing.sendClients();
                refusing.answer();
                taken = take(isFull);
                String refusal = null;
                try {
                    refusing.client.step();
                } catch (IOException error) {
                    refusal = error.getMessage();
                }
                give(taken);
                assertEquals(isFull, refusal != null && refusal.contains("too many open files"), refusal);
            }
        }

        static List<Integer> take(boolean all) {
            List<Integer> taken = new ArrayList<>();
            for (int each; (all || taken.isEmpty()) && (each = Native.socket()) >= 0;) {
                taken.add(each);
            }
            return taken;
        }

        static void give(List<Integer> taken) {
            for (int each : taken) {
                Native.close(each);
            }
        }
    }

    @Test
    void aServerWithoutDescriptorsUsesTheSocket() throws Exception {
        assertPasses(Descriptors.class);
    }

    /** A process's main: a client that has no descriptor left when the server's memory comes, and later one that has. */
    public static final class LateShortage {
        public static void main(String[] arguments) throws Exception {
            String path = name();
            try (ShmServerSocket usual = new ShmServerSocket(name())) {
                Errors.of("none", 0);
                assertTrue(shares(usual), "before");
                long before = Fixtures.resources();
                assertEquals("a descriptor could not be received: too many open files", refusal(path));
                assertEquals(before, Fixtures.resources());
                assertTrue(shares(usual), "after");
            }
        }

        private static boolean shares(ShmServerSocket server) throws IOException {
            try (ShmSocket client = new ShmSocket(((ShmSocketAddress) server.getLocalSocketAddress()).path());
                    Socket peer = server.accept()) {
                client.getOutputStream().write(7);
                return peer.getInputStream().read() == 7 && client.sharesMemory();
            }
        }

        /** The server is spoken by hand: between the client's HELLO and the answer, all descriptors are taken. */
        private static String refusal(String path) throws Exception {
            int listener = Native.socket();
            assertEquals(0, Native.bind(listener, new ShmSocketAddress(path).name()));
            assertEquals(0, Native.listen(listener, 1));
            var connecting = Fixtures.inThread(() -> new ShmSocket(path));
            int[] peer = {-1};
            Fixtures.eventually("a client", () -> (peer[0] = Native.accept(listener)) >= 0);
            byte[] hello = new byte[Layout.HELLO_SIZE];
            int[] found = new int[2];
            Fixtures.eventually("its HELLO", () -> Native.receiveMessage(peer[0], hello, 0, found, false) == hello.length);
            int file = Native.memoryFile((long) Layout.HEADER_SIZE + Layout.MIN_RING);
            assertEquals(0, Native.seal(file));
            List<Integer> taken = Descriptors.take(true);
            byte[] answer = new Hello(Layout.FEATURE_MEMORY, Layout.DOORBELL_SOCKET, Layout.MIN_RING, 0).encode();
            assertEquals(answer.length, Native.sendDescriptor(peer[0], answer, file));
            Throwable error = null;
            try {
                Fixtures.get(connecting);
            } catch (java.util.concurrent.ExecutionException failure) {
                error = failure.getCause();
            }
            Descriptors.give(taken);
            for (int each : new int[] {file, found[0], peer[0], listener}) {
                Native.close(each);
            }
            return error instanceof IOException ? error.getMessage() : String.valueOf(error);
        }
    }

    @Test
    void aClientWithoutADescriptorForTheServersMemoryFailsAlone() throws Exception {
        assertPasses(LateShortage.class);
    }

    /**
     * A process's main: as many descriptors in flight as its user may have; then one connection as a server at its first
     * argument, one as a client of its second, and more as a server when these descriptors are no longer in flight.
     */
    public static final class InFlight {
        public static void main(String[] arguments) throws Exception {
            int[] fds = new int[2];
            assertEquals(0, Native.socketPair(fds));
            // Its own fill the limit: those of the user's other processes are received at any moment.
            int own = 0;
            int sent = 0;
            long end = System.nanoTime() + 10_000_000_000L;
            while (own < 2 * FEW && (sent >= 0 || own <= FEW) && System.nanoTime() - end < 0) {
                sent = Native.sendDescriptor(fds[0], new byte[1], fds[0]);
                if (sent >= 0) {
                    ++own;
                } else {
                    Thread.sleep(1);
                }
            }
            try (ShmServerSocket server = new ShmServerSocket(arguments[0])) {
                System.out.println(own > FEW && sent == -Errors.ETOOMANYREFS ? "full" : "no limit: " + sent);
                try (Socket peer = server.accept()) {
                    peer.getOutputStream().write(peer.getInputStream().read());
                    System.out.println(((ShmSocket) peer).sharesMemory());
                }
                try (ShmSocket client = new ShmSocket(arguments[1])) {
                    System.out.println(sharesAndEchoes(client));
                }
                Native.close(fds[0]);
                Native.close(fds[1]);
                for (;;) {
                    try (Socket peer = server.accept()) {
                        peer.getOutputStream().write(peer.getInputStream().read());
                    }
                }
            }
        }
    }

    /** The limit holds for processes without these two capabilities, root's among them. */
    private static List<String> withoutCapabilities(List<String> command) {
        if (Native.user() != 0) {
            return command;
        }
        List<String> made = new ArrayList<>(List.of("setpriv", "--inh-caps=-sys_resource,-sys_admin",
                "--bounding-set=-sys_resource,-sys_admin"));
        made.addAll(command);
        return made;
    }

    @Test
    void sidesWithTooManyDescriptorsInFlightUseTheSocket() throws Exception {
        String its = name();
        String own = name();
        List<String> command = withFewDescriptors(withoutCapabilities(Fixtures.javaCommand(List.of(), InFlight.class, its, own)));
        Process process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        try (BufferedReader said = process.inputReader(); ShmServerSocket server = new ShmServerSocket(own)) {
            String limit = said.readLine();
            Assumptions.assumeTrue("full".equals(limit), "descriptors in flight have no limit here: " + limit);
            try (ShmSocket client = new ShmSocket(its)) {
                assertFalse(sharesAndEchoes(client));
            }
            assertEquals("false", said.readLine());
            try (Socket peer = server.accept()) {
                peer.getOutputStream().write(peer.getInputStream().read());
                assertFalse(((ShmSocket) peer).sharesMemory());
            }
            assertEquals("false", said.readLine());
            // Other processes of the user may have some in flight, too.
            Fixtures.eventually("a connection that shares memory", () -> {
                try (ShmSocket client = new ShmSocket(its)) {
                    return sharesAndEchoes(client);
                }
            });
        } finally {
            process.destroyForcibly().waitFor();
        }
    }
}
