// Benchmark: round trips between two JVMs over shared memory or TCP, as eddy bench shm measures them.
package io.eddy.shm;

import java.io.BufferedWriter;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/**
 * Sends a ping of 4 bytes to a server in another JVM, waits for the reply, and prints the times by percentile. Its options
 * are system properties:
 *
 * <pre>
 *     java -Dreps=500000 -jar eddy-shm.jar
 *
 *     tcp=true       over TCP on loopback in place of shared memory
 *     reps=N         round trips that are measured (300000)
 *     pause=NS       nanoseconds between two of them (0)
 *     replySize=N    bytes of the reply (1024)
 *     warmup=N       round trips before them (50000)
 *     port=N         of TCP, and in the name of the Unix socket (3333)
 *     nostats=true   keep no latencies: for very many round trips
 *     wait=HOW       adaptive, spin or sleep (adaptive)
 *     asymmetric=true  no fence when publishing: the sleeper pays for it
 *     ring=BYTES     of each direction, a power of two (262144)
 *     stream=BYTES   one-way messages of this size instead, for -Dseconds
 *     seconds=S      time of one-way messages (2)
 *     cpus=A,B       processors of the client and the server, or any (0,1)
 *     output=FILE    latencies in microseconds, sorted, one a line: for gnuplot (Shm or Socket in the temporary folder)
 * </pre>
 */
public final class Bench {
    private static final int PING_SIZE = 4;
    private static final int LINE_ROUNDS = 20_000;
    /** A pause up to this long is spent spinning: sleeping takes longer to end. */
    private static final long LONGEST_SPIN_NS = 50_000;
    private static final int PROGRESS_EVERY = 16_384;
    private static final String[] PERCENTS = {"1", "10", "50", "99", "99.9", "99.99", "99.999", "99.9999"};
    private static final String[] PASSED_ON = {"tcp", "replySize", "port", "wait", "asymmetric", "ring", "stream",
        "seconds", "cpus"};

    private final Properties given;
    private final boolean isTcp;
    private final int reps;
    private final int warmup;
    private final long pause;
    private final int replySize;
    private final int port;
    private final boolean keepsLatencies;
    private final int messageSize;
    private final double seconds;
    private final int clientProcessor;
    private final int serverProcessor;
    private final ShmOptions options;

    private Bench(Properties given) {
        this.given = given;
        isTcp = Boolean.parseBoolean(given.getProperty("tcp"));
        reps = (int) number("reps", 1, 100_000_000, 300_000);
        warmup = (int) number("warmup", 0, 100_000_000, 50_000);
        pause = number("pause", 0, 1_000_000_000, 0);
        replySize = (int) number("replySize", 1, 16 << 20, 1024);
        port = (int) number("port", 1, 65_535, 3333);
        keepsLatencies = !Boolean.parseBoolean(given.getProperty("nostats"));
        messageSize = (int) number("stream", 0, 16 << 20, 0);
        seconds = Double.parseDouble(given.getProperty("seconds", "2"));
        String[] processors = given.getProperty("cpus", "0,1").split(",");
        boolean isAny = processors[0].equals("any");
        clientProcessor = isAny ? -1 : Integer.parseInt(processors[0]);
        serverProcessor = isAny ? -1 : Integer.parseInt(processors[1]);
        options = ShmOptions.DEFAULT
                .withWaiting(ShmOptions.Waiting.valueOf(given.getProperty("wait", "adaptive").toUpperCase(Locale.ROOT)))
                .withAsymmetricFence(Boolean.parseBoolean(given.getProperty("asymmetric")))
                .withRingSize((int) number("ring", Layout.MIN_RING, Layout.MAX_RING, Layout.DEFAULT_RING));
    }

    private long number(String name, long least, long most, long usual) {
        String text = given.getProperty(name);
        long value = text == null ? usual : Long.parseLong(text);
        if (value < least || value > most) {
            throw new IllegalArgumentException(name + " must be from " + least + " to " + most);
        }
        return value;
    }

    private String path() {
        return "@eddy-bench-shm-" + port;
    }

    private String what() {
        return isTcp ? "TCP" : "shared memory";
    }

    /** Runs the benchmark; the server's process runs it with {@code server}. */
    public static void main(String[] arguments) throws Exception {
        Bench bench;
        try {
            bench = new Bench(System.getProperties());
        } catch (IllegalArgumentException | IndexOutOfBoundsException error) {
            System.err.println("bad option: " + error.getMessage());
            System.exit(2);
            return;
        }
        // Before this thread has one processor alone.
        boolean ignored = Threads.SPINNING_TAKES_TURNS;
        if (arguments.length == 1 && arguments[0].equals("server")) {
            bench.serve();
        } else {
            bench.run();
        }
    }

    private static void pin(int processor) {
        if (processor >= 0 && Native.pin(processor) < 0) {
            throw new IllegalStateException("cannot run on processor " + processor);
        }
    }

    private static byte patternAt(int position) {
        return (byte) (position * 7 + 1);
    }

    // ---- the server

    private void serve() throws IOException {
        // It ends with the client's process.
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
        pin(serverProcessor);
        try (ServerSocket listening = isTcp ? new ServerSocket(port, 1, InetAddress.getLoopbackAddress())
                : new ShmServerSocket(path(), options)) {
            System.out.println("listening");
            try (Socket client = listening.accept()) {
                client.setTcpNoDelay(true);
                if (messageSize > 0) {
                    sendMessages(client);
                } else {
                    answerPings(client.getInputStream(), client.getOutputStream());
                }
            }
        }
        Runtime.getRuntime().halt(0);
    }

    private void answerPings(InputStream in, OutputStream out) throws IOException {
        byte[] reply = new byte[replySize];
        for (int i = 0; i < reply.length; ++i) {
            reply[i] = patternAt(i);
        }
        byte[] ping = new byte[PING_SIZE];
        while (receive(in, ping)) {
            out.write(reply);
        }
    }

    private void sendMessages(Socket client) throws IOException {
        byte[] message = new byte[messageSize];
        OutputStream out = client.getOutputStream();
        client.getInputStream().read();
        long end = System.nanoTime() + (long) (seconds * 1e9);
        for (long i = 0; i % 64 != 0 || System.nanoTime() < end; ++i) {
            out.write(message);
        }
    }

    /** False at the end. */
    private static boolean receive(InputStream in, byte[] into) throws IOException {
        for (int done = 0; done < into.length;) {
            int size = in.read(into, done, into.length - done);
            if (size < 0) {
                return false;
            }
            done += size;
        }
        return true;
    }

    // ---- the client

    private void run() throws Exception {
        List<String> command = new ArrayList<>(List.of(Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-cp", System.getProperty("java.class.path")));
        if (Runtime.version().feature() >= 22) {
            command.add("--enable-native-access=ALL-UNNAMED");
        }
        for (String name : PASSED_ON) {
            if (given.getProperty(name) != null) {
                command.add("-D" + name + "=" + given.getProperty(name));
            }
        }
        command.addAll(List.of(Bench.class.getName(), "server"));
        Process server = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        try {
            if (server.getInputStream().read() < 0) {
                throw new IOException("the server did not start");
            }
            long before = measureLine();
            pin(clientProcessor);
            try (Socket socket = isTcp ? new Socket() : new ShmSocket(options)) {
                socket.setTcpNoDelay(true);
                socket.connect(isTcp ? new InetSocketAddress(InetAddress.getLoopbackAddress(), port)
                        : new ShmSocketAddress(path()));
                if (messageSize > 0) {
                    measureStream(socket, before);
                } else {
                    measureRounds(socket, before);
                }
            }
        } finally {
            server.destroy();
            server.waitFor();
        }
    }

    private void printHead(long before) throws Exception {
        long after = measureLine();
        String line = before == 0 ? "" : "; a cache line goes to and fro in " + before + " ns before, " + after + " ns after";
        System.out.println("Over " + what() + line);
    }

    private void measureStream(Socket socket, long before) throws Exception {
        byte[] buffer = new byte[Math.max(messageSize, 65_536)];
        InputStream in = socket.getInputStream();
        socket.getOutputStream().write(0);
        in.read(buffer);
        long begun = System.nanoTime();
        long bytes = 0;
        for (int size; (size = in.read(buffer)) > 0;) {
            bytes += size;
        }
        double took = (System.nanoTime() - begun) / 1e9;
        printHead(before);
        double rate = (double) bytes / messageSize / took;
        System.out.printf(Locale.ROOT, "%.2f M messages of %d bytes a second, %.2f GB/s%n", rate / 1e6, messageSize,
                rate * messageSize / 1e9);
    }

    private void measureRounds(Socket socket, long before) throws Exception {
        InputStream in = socket.getInputStream();
        OutputStream out = socket.getOutputStream();
        int[] latencies = new int[keepsLatencies ? reps : 0];
        double warmed = rounds(in, out, warmup, new int[0], "Warming up  ");
        double tested = rounds(in, out, reps, latencies, "Running test");
        printHead(before);
        printRounds("Warming up", warmup, warmed);
        printRounds("Running test", reps, tested);
        if (keepsLatencies) {
            report(latencies);
        }
    }

    private void printRounds(String name, int count, double took) {
        System.out.printf(Locale.ROOT, "%-15s: %10d reps, pause between reps: %dns... done in %.0fms%n", name, count, pause,
                took * 1e3);
    }

    private double rounds(InputStream in, OutputStream out, int count, int[] latencies, String name) throws IOException {
        byte[] ping = new byte[PING_SIZE];
        byte[] reply = new byte[replySize];
        boolean keeps = latencies.length > 0;
        boolean shows = System.console() != null;
        long begun = System.nanoTime();
        for (int i = 0; i < count; ++i) {
            if (pause > 0) {
                pauseFor(pause);
            }
            long sent = System.nanoTime();
            out.write(ping, 0, PING_SIZE);
            if (!receive(in, reply)) {
                throw new IOException("the server has ended");
            }
            if (keeps) {
                latencies[i] = (int) Math.min(System.nanoTime() - sent, Integer.MAX_VALUE);
            }
            if (shows && i % PROGRESS_EVERY == 0) {
                show(name, i, count);
            }
        }
        double took = (System.nanoTime() - begun) / 1e9;
        if (shows) {
            System.err.print("\r\033[K");
        }
        for (int i = 0; count > 0 && i < reply.length; ++i) {
            if (reply[i] != patternAt(i)) {
                throw new IOException("the server's reply has other bytes");
            }
        }
        return took;
    }

    private static void pauseFor(long nanos) {
        long begun = System.nanoTime();
        if (nanos > LONGEST_SPIN_NS) {
            LockSupport.parkNanos(nanos);
        }
        while (System.nanoTime() - begun < nanos) {
            // Spins.
        }
    }

    private static void show(String name, long done, long all) {
        int width = 30;
        int filled = (int) (done * width / all);
        System.err.print("\r" + name + " [" + "=".repeat(filled) + " ".repeat(width - filled) + "] " + done + " of " + all);
    }

    private void report(int[] latencies) throws IOException {
        Arrays.sort(latencies);
        Path file = Path.of(given.getProperty("output",
                Path.of(System.getProperty("java.io.tmpdir"), isTcp ? "Socket" : "Shm").toString()));
        System.out.println("Dumping results in " + file);
        try (BufferedWriter out = Files.newBufferedWriter(file)) {
            for (int each : latencies) {
                out.write(String.format(Locale.ROOT, "%d.%03d%n", each / 1000, each % 1000));
            }
        }
        for (String percent : PERCENTS) {
            double part = Double.parseDouble(percent);
            long left = Math.round(latencies.length * (100 - part) / 100);
            int rank = Math.min((int) (part / 100 * latencies.length), latencies.length - 1);
            System.out.printf(Locale.ROOT, "%-13s (%7d) : %8.2f (us)%n", percent + "%", left, latencies[rank] / 1e3);
        }
    }

    // ---- what the processors themselves need

    /** Round trip of a cache line between both processors, the median in ns; 0 where they are not chosen. */
    private long measureLine() throws Exception {
        if (clientProcessor < 0 || clientProcessor == serverProcessor) {
            return 0;
        }
        AtomicLong[] lines = new AtomicLong[64];
        Arrays.setAll(lines, i -> new AtomicLong());
        AtomicLong ping = lines[0];
        AtomicLong pong = lines[63];
        Thread answering = new Thread(() -> {
            pin(serverProcessor);
            for (long i = 1; i <= LINE_ROUNDS; ++i) {
                while (ping.getAcquire() != i) {
                    // Spins.
                }
                pong.setRelease(i);
            }
        });
        long[] took = new long[LINE_ROUNDS];
        Thread asking = new Thread(() -> {
            pin(clientProcessor);
            for (int i = 0; i < LINE_ROUNDS; ++i) {
                long begun = System.nanoTime();
                ping.setRelease(i + 1);
                while (pong.getAcquire() != i + 1) {
                    // Spins.
                }
                took[i] = System.nanoTime() - begun;
            }
        });
        answering.start();
        asking.start();
        answering.join();
        asking.join();
        Arrays.sort(took);
        return took[LINE_ROUNDS / 2];
    }
}
