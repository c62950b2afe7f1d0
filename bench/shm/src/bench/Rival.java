// Rivals of shared-memory sockets on the JVM, measured between two processes as `eddy bench shm` measures.
package bench;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.management.ManagementFactory;
import java.net.SocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/**
 * Round trips or one-way messages; the result is one JSON object. The server is a JVM with the same flags. Options are system
 * properties: over (aeron, tcp or unix), spin, folder, port, reps, warmup, pause, replySize, stream, seconds, inPlace, cpus.
 */
public final class Rival {
    private static final int PING_SIZE = 4;
    private static final int CPU_SET_BYTES = 128;
    /** Uncounted one-way messages at the start, while code is compiled. */
    private static final long STREAM_WARMUP_NS = 500_000_000;

    private final String over = System.getProperty("over", "aeron");
    private final boolean spins = Boolean.getBoolean("spin");
    private final String folder = System.getProperty("folder");
    private final int port = Integer.getInteger("port", 3333);
    private final int reps = Integer.getInteger("reps", 300_000);
    private final int warmup = Integer.getInteger("warmup", 50_000);
    private final long pause = Long.getLong("pause", 0);
    private final int replySize = Integer.getInteger("replySize", 1024);
    private final int messageSize = Integer.getInteger("stream", 0);
    private final double seconds = Double.parseDouble(System.getProperty("seconds", "2"));
    private final boolean inPlace = Boolean.getBoolean("inPlace");
    private final String[] processors = System.getProperty("cpus", "0,1").split(",");

    private Rival() {}

    /** Measures; the server's process is given {@code server}. */
    public static void main(String[] arguments) {
        int status = 0;
        try {
            if (arguments.length == 1 && arguments[0].equals("server")) {
                new Rival().serve();
            } else {
                new Rival().run();
            }
        } catch (Throwable error) {
            error.printStackTrace();
            status = 1;
        }
        // Aeron's threads would go on.
        System.out.flush();
        Runtime.getRuntime().halt(status);
    }

    /** Binds this thread, and threads that it starts later, to a processor: sched_setaffinity(2). The JVM's own stay free. */
    private static void pin(String processor) throws Throwable {
        int number = Integer.parseInt(processor);
        MethodHandle call = Linker.nativeLinker().downcallHandle(
                Linker.nativeLinker().defaultLookup().find("sched_setaffinity").orElseThrow(),
                FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.JAVA_INT, ValueLayout.JAVA_LONG, ValueLayout.ADDRESS));
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment set = arena.allocate(CPU_SET_BYTES, Long.BYTES);
            set.setAtIndex(ValueLayout.JAVA_LONG, number / Long.SIZE, 1L << number % Long.SIZE);
            if ((int) call.invokeExact(0, (long) CPU_SET_BYTES, set) < 0) {
                throw new IOException("cannot run on processor " + number);
            }
        }
    }

    private SocketAddress address() {
        return ChannelPeer.address(over.equals("tcp"), folder, port);
    }

    private static byte patternAt(int position) {
        return (byte) (position * 7 + 1);
    }

    // ---- the server

    private void serve() throws Throwable {
        endWithClient();
        Peer client;
        if (over.equals("aeron")) {
            AeronPeer.startDriver(folder);
            System.out.println("listening");
            client = new AeronPeer(folder, true, messageSize);
        } else {
            try (ServerSocketChannel listening = ChannelPeer.listen(address())) {
                System.out.println("listening");
                client = ChannelPeer.accept(listening, spins);
            }
        }
        pin(processors[1]);
        if (messageSize > 0) {
            sendMessages(client);
        } else {
            answerPings(client);
        }
        // The driver is this process's: the client ends it.
        Thread.sleep(Long.MAX_VALUE);
    }

    private static void endWithClient() {
        Thread watch = new Thread(() -> {
            try {
                System.in.read();
            } catch (IOException gone) {
                // So is the client.
            }
            Runtime.getRuntime().halt(1);
        });
        watch.setDaemon(true);
        watch.start();
    }

    private void answerPings(Peer client) throws IOException {
        ByteBuffer reply = ByteBuffer.allocateDirect(replySize);
        for (int i = 0; i < replySize; ++i) {
            reply.put(i, patternAt(i));
        }
        ByteBuffer ping = ByteBuffer.allocateDirect(PING_SIZE);
        while (client.receive(ping)) {
            client.send(reply);
        }
    }

    private void sendMessages(Peer client) throws IOException {
        ByteBuffer message = ByteBuffer.allocateDirect(messageSize);
        client.receive(ByteBuffer.allocateDirect(PING_SIZE));
        long end = System.nanoTime() + STREAM_WARMUP_NS + (long) (seconds * 1e9);
        for (long i = 0; i % 64 != 0 || System.nanoTime() < end; ++i) {
            if (inPlace) {
                client.sendInPlace(message);
            } else {
                client.send(message);
            }
        }
        client.end();
    }

    // ---- the client

    private void run() throws Throwable {
        List<String> command = new ArrayList<>(List.of(Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-cp", System.getProperty("java.class.path")));
        command.addAll(ManagementFactory.getRuntimeMXBean().getInputArguments());
        command.addAll(List.of(Rival.class.getName(), "server"));
        Process server = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        try {
            if (server.getInputStream().read() < 0) {
                throw new IOException("the server did not start");
            }
            Peer peer = over.equals("aeron") ? new AeronPeer(folder, false, messageSize) : ChannelPeer.connect(address(), spins);
            pin(processors[0]);
            if (messageSize > 0) {
                measureStream(peer);
            } else {
                measureRounds(peer);
            }
        } finally {
            server.destroyForcibly();
            server.waitFor();
        }
    }

    private void measureStream(Peer server) throws IOException {
        ByteBuffer buffer = ByteBuffer.allocateDirect(Math.max(messageSize, 65_536));
        server.send(ByteBuffer.allocateDirect(PING_SIZE));
        long begun = System.nanoTime();
        while (System.nanoTime() - begun < STREAM_WARMUP_NS) {
            server.drain(buffer, inPlace);
        }
        begun = System.nanoTime();
        long bytes = 0;
        for (int size; (size = server.drain(buffer, inPlace)) > 0;) {
            bytes += size;
        }
        double took = (System.nanoTime() - begun) / 1e9;
        System.out.printf(Locale.ROOT, "{\"messages_per_second\": %.0f}%n", (double) bytes / messageSize / took);
    }

    private void measureRounds(Peer server) throws IOException {
        rounds(server, warmup, new int[0]);
        int[] latencies = new int[reps];
        rounds(server, reps, latencies);
        Arrays.sort(latencies);
        System.out.printf(Locale.ROOT, "{\"latency_us\": {\"p50\": %.3f, \"p99\": %.3f, \"p99.9\": %.3f}}%n",
                percentile(latencies, 50), percentile(latencies, 99), percentile(latencies, 99.9));
    }

    private static double percentile(int[] sorted, double percent) {
        return sorted[Math.min((int) (percent / 100 * sorted.length), sorted.length - 1)] / 1e3;
    }

    private void rounds(Peer server, int count, int[] latencies) throws IOException {
        ByteBuffer ping = ByteBuffer.allocateDirect(PING_SIZE);
        ByteBuffer reply = ByteBuffer.allocateDirect(replySize);
        boolean keeps = latencies.length > 0;
        for (int i = 0; i < count; ++i) {
            if (pause > 0) {
                long begun = System.nanoTime();
                while (System.nanoTime() - begun < pause) {
                    // Spins.
                }
            }
            long sent = System.nanoTime();
            server.send(ping);
            if (!server.receive(reply)) {
                throw new IOException("the server has ended");
            }
            if (keeps) {
                latencies[i] = (int) Math.min(System.nanoTime() - sent, Integer.MAX_VALUE);
            }
        }
        for (int i = 0; count > 0 && i < replySize; ++i) {
            if (reply.get(i) != patternAt(i)) {
                throw new IOException("the server's reply has other bytes");
            }
        }
    }
}
