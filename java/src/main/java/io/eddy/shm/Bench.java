// Benchmark: round trips between two JVMs over shared memory or TCP, as eddy bench shm measures them.
package io.eddy.shm;

import java.io.BufferedOutputStream;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
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
 *     stream=BYTES   one-way messages of this size instead, for -Dseconds, after a second that is not counted
 *     seconds=S      time of one-way messages (2)
 *     batch=N        one-way messages that are flushed together (1)
 *     inPlace=true   one-way messages are neither copied in nor out
 *     cpus=A,B       processors of the client and the server, or any (0,1)
 *     output=FILE    latencies in microseconds, sorted, one a line: for gnuplot (Shm or Socket in the temporary folder)
 *     svg=FILE       round trips over shared memory and then over TCP, and a figure of both
 * </pre>
 */
public final class Bench {
    private static final int PING_SIZE = 4;
    private static final int LINE_ROUNDS = 50_000;
    /** Round trips of which a median is taken; the least one counts, as JVMs compile and collect beside the others. */
    private static final int LINE_WINDOW = 2_000;
    /** A pause up to this long is spent spinning: sleeping takes longer to end. */
    private static final long LONGEST_SPIN_NS = 50_000;
    private static final int PROGRESS_EVERY = 16_384;
    /** Longest message, and most bytes that are flushed together. */
    private static final int LONGEST = 16 << 20;
    /** Bytes that are read at once, at least: a reader of single messages would measure its own calls. */
    private static final int DRAINED = 65_536;
    /** One-way messages before those that are counted. */
    private static final double WARMUP_S = 1;
    private static final int CLOCK_EVERY = 64;
    /** Time after which the server's JVM compiles nothing more, until it is connected to. */
    private static final int SERVER_START_MS = 200;
    private static final int PROGRESS_STEPS = 30;
    private static final String[] PERCENTS = {"1", "10", "50", "99", "99.9", "99.99", "99.999", "99.9999"};
    private static final String[] PASSED_ON = {"replySize", "port", "wait", "asymmetric", "ring", "stream",
        "seconds", "batch", "inPlace", "cpus"};

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
    private final int batch;
    private final boolean isInPlace;
    private final int clientProcessor;
    private final int serverProcessor;
    private final ShmOptions options;
    private final boolean showsProgress;

    private Bench(Properties given, boolean isTcp) {
        this.given = given;
        this.isTcp = isTcp;
        reps = (int) number("reps", 1, 100_000_000, 300_000);
        warmup = (int) number("warmup", 0, 100_000_000, 50_000);
        pause = number("pause", 0, 1_000_000_000, 0);
        replySize = (int) number("replySize", 1, LONGEST, 1024);
        port = (int) number("port", 1, 65_535, 3333);
        keepsLatencies = !Boolean.parseBoolean(given.getProperty("nostats"));
        messageSize = (int) number("stream", 0, LONGEST, 0);
        seconds = Double.parseDouble(given.getProperty("seconds", "2"));
        batch = (int) number("batch", 1, messageSize == 0 ? LONGEST : Math.max(1, LONGEST / messageSize), 1);
        isInPlace = Boolean.parseBoolean(given.getProperty("inPlace"));
        String[] processors = given.getProperty("cpus", "0,1").split(",");
        boolean isAny = processors[0].equals("any");
        clientProcessor = isAny ? -1 : Integer.parseInt(processors[0]);
        serverProcessor = isAny ? -1 : Integer.parseInt(processors[1]);
        options = ShmOptions.DEFAULT
                .withWaiting(ShmOptions.Waiting.valueOf(given.getProperty("wait", "adaptive").toUpperCase(Locale.ROOT)))
                .withAsymmetricFence(Boolean.parseBoolean(given.getProperty("asymmetric")))
                .withRingSize((int) number("ring", Layout.MIN_RING, Layout.MAX_RING, Layout.DEFAULT_RING));
        if (given.getProperty("svg") != null && (messageSize > 0 || !keepsLatencies)) {
            throw new IllegalArgumentException("svg draws latencies of round trips, without stream and nostats");
        }
        showsProgress = isTerminal();
    }

    private long number(String name, long least, long most, long usual) {
        String text = given.getProperty(name);
        long value = text == null ? usual : Long.parseLong(text);
        if (value < least || value > most) {
            throw new IllegalArgumentException(name + " must be from " + least + " to " + most);
        }
        return value;
    }

    /** Whether standard error is one: System.console() is also there without. */
    private static boolean isTerminal() {
        try {
            String file = Files.readSymbolicLink(Path.of("/proc/self/fd/2")).toString();
            return file.startsWith("/dev/pts/") || file.startsWith("/dev/tty");
        } catch (IOException error) {
            return false;
        }
    }

    private String path() {
        return "@eddy-bench-shm-" + port;
    }

    private String what() {
        return isTcp ? "TCP" : "shared memory";
    }

    /** Runs the benchmark; the server's process runs it with {@code server}. */
    public static void main(String[] arguments) throws Exception {
        Properties given = System.getProperties();
        Bench bench;
        try {
            bench = new Bench(given, Boolean.parseBoolean(given.getProperty("tcp")));
        } catch (IllegalArgumentException | IndexOutOfBoundsException error) {
            System.err.println("bad option: " + error.getMessage());
            System.exit(2);
            return;
        }
        // Before this thread has one processor alone.
        boolean ignored = Threads.SPINNING_TAKES_TURNS;
        if (arguments.length == 1 && arguments[0].equals("server")) {
            bench.serve();
        } else if (given.getProperty("svg") != null) {
            drawBoth(given);
        } else {
            bench.run();
        }
    }

    private static void drawBoth(Properties given) throws Exception {
        Bench shared = new Bench(given, false);
        BenchFigure figure = new BenchFigure("Round trips between two JVMs, by percentile",
                "4 bytes there, " + shared.replySize + " bytes back; JDK " + Runtime.version().feature());
        for (Bench each : new Bench[] {shared, new Bench(given, true)}) {
            figure.add(each.what(), each.run());
        }
        Files.writeString(Path.of(given.getProperty("svg")), figure.svg());
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
                if (messageSize == 0) {
                    answerPings(client.getInputStream(), client.getOutputStream());
                } else {
                    client.getInputStream().read();
                    long end = System.nanoTime() + (long) ((WARMUP_S + seconds) * 1e9);
                    if (client instanceof ShmSocket) {
                        sendMessages(((ShmSocket) client).writer(), end);
                    } else {
                        sendMessages(client.getOutputStream(), end);
                    }
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

    private void sendMessages(ShmWriter to, long end) throws IOException {
        byte[] message = new byte[messageSize];
        int unflushed = 0;
        for (long i = 0; i % CLOCK_EVERY != 0 || System.nanoTime() < end; ++i) {
            for (int done = 0;;) {
                done += isInPlace ? appendInPlace(to, messageSize - done) : to.write(message, done, messageSize - done);
                if (done == messageSize) {
                    break;
                }
                to.flush();
                unflushed = 0;
                to.await();
            }
            if (++unflushed == batch) {
                to.flush();
                unflushed = 0;
            }
        }
        to.finish();
    }

    private static int appendInPlace(ShmWriter to, int size) throws IOException {
        ByteBuffer room = to.room();
        int part = Math.min(size, room.remaining());
        if (part > 0) {
            room.put(room.position(), (byte) 1);
            to.append(part);
        }
        return part;
    }

    private void sendMessages(OutputStream to, long end) throws IOException {
        byte[] message = new byte[messageSize];
        OutputStream out = batch == 1 ? to : new BufferedOutputStream(to, batch * messageSize);
        for (long i = 0; i % CLOCK_EVERY != 0 || System.nanoTime() < end; ++i) {
            out.write(message);
        }
        out.flush();
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

    /** Prints the results; the latencies in nanoseconds, sorted, if they were kept. */
    private int[] run() throws Exception {
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
        command.addAll(List.of("-Dtcp=" + isTcp, Bench.class.getName(), "server"));
        Process server = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        try {
            if (server.getInputStream().read() < 0) {
                throw new IOException("the server did not start");
            }
            // The first time is that of code which is not compiled yet, beside a server that starts.
            measureLine();
            Thread.sleep(SERVER_START_MS);
            long before = measureLine();
            pin(clientProcessor);
            int[] latencies = new int[keepsLatencies ? reps : 0];
            String results;
            try (Socket socket = isTcp ? new Socket() : new ShmSocket(options)) {
                socket.setTcpNoDelay(true);
                socket.connect(isTcp ? new InetSocketAddress(InetAddress.getLoopbackAddress(), port)
                        : new ShmSocketAddress(path()));
                results = messageSize > 0 ? measureStream(socket) : measureRounds(socket, latencies);
            }
            // Else it would run beside the measurement of the line.
            if (server.waitFor() != 0) {
                throw new IOException("the server has failed");
            }
            long after = measureLine();
            System.out.println("Over " + what() + (before == 0 ? ""
                    : "; a cache line goes to and fro in " + before + " ns before, " + after + " ns after"));
            System.out.print(results);
            if (messageSize == 0 && keepsLatencies) {
                report(latencies);
            }
            return latencies;
        } finally {
            server.destroy();
            server.waitFor();
        }
    }

    private String measureStream(Socket socket) throws IOException {
        socket.getOutputStream().write(0);
        byte[] buffer = new byte[Math.max(messageSize, DRAINED)];
        Drain from = socket instanceof ShmSocket ? new Drain(((ShmSocket) socket).reader(), isInPlace, buffer)
                : new Drain(socket.getInputStream(), buffer);
        long begun = System.nanoTime();
        long counted = begun + (long) (WARMUP_S * 1e9);
        from.readUntil(counted);
        begun = System.nanoTime();
        long bytes = 0;
        long step = (long) (seconds * 1e9 / PROGRESS_STEPS);
        for (int i = 1; from.isOpen; ++i) {
            bytes += from.readUntil(counted + i * step);
            if (showsProgress) {
                show("Running test", Math.min(i, PROGRESS_STEPS), PROGRESS_STEPS);
            }
        }
        double took = (System.nanoTime() - begun) / 1e9;
        clearProgress();
        double rate = (double) bytes / messageSize / took;
        return String.format(Locale.ROOT, "%.2f M messages of %d bytes a second, %.2f GB/s%n", rate / 1e6, messageSize,
                rate * messageSize / 1e9);
    }

    /** One-way messages, used up at once. */
    private static final class Drain {
        private final InputStream stream;
        private final ShmReader reader;
        private final boolean isInPlace;
        private final byte[] buffer;
        boolean isOpen = true;

        Drain(InputStream stream, byte[] buffer) {
            this.stream = stream;
            this.reader = null;
            this.isInPlace = false;
            this.buffer = buffer;
        }

        Drain(ShmReader reader, boolean isInPlace, byte[] buffer) {
            this.stream = null;
            this.reader = reader;
            this.isInPlace = isInPlace;
            this.buffer = buffer;
        }

        /** Bytes that came until then, or until the end. */
        long readUntil(long time) throws IOException {
            long bytes = 0;
            for (long i = 1; i % CLOCK_EVERY != 0 || System.nanoTime() < time; ++i) {
                int size = stream != null ? stream.read(buffer) : isInPlace ? readInPlace() : reader.read(buffer);
                if (size > 0) {
                    bytes += size;
                } else if (size < 0 || !reader.await()) {
                    isOpen = false;
                    break;
                }
            }
            return bytes;
        }

        private int readInPlace() throws IOException {
            ByteBuffer seen = reader.peek();
            if (seen == null) {
                return -1;
            }
            int size = seen.remaining();
            reader.consume(size);
            return size;
        }
    }

    private String measureRounds(Socket socket, int[] latencies) throws IOException {
        InputStream in = socket.getInputStream();
        OutputStream out = socket.getOutputStream();
        double warmed = rounds(in, out, warmup, new int[0], "Warming up  ");
        double tested = rounds(in, out, reps, latencies, "Running test");
        return roundsText("Warming up", warmup, warmed) + roundsText("Running test", reps, tested);
    }

    private String roundsText(String name, int count, double took) {
        return String.format(Locale.ROOT, "%-15s: %10d reps, pause between reps: %dns... done in %.0fms%n", name, count,
                pause, took * 1e3);
    }

    private double rounds(InputStream in, OutputStream out, int count, int[] latencies, String name) throws IOException {
        byte[] ping = new byte[PING_SIZE];
        byte[] reply = new byte[replySize];
        boolean keeps = latencies.length > 0;
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
            if (showsProgress && i % PROGRESS_EVERY == 0) {
                show(name, i, count);
            }
        }
        double took = (System.nanoTime() - begun) / 1e9;
        clearProgress();
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

    private void clearProgress() {
        if (showsProgress) {
            System.err.print("\r\033[K");
        }
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

    /** Round trip of a cache line between both processors in ns; 0 where they are not chosen. */
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
        long least = Long.MAX_VALUE;
        for (int from = 0; from < LINE_ROUNDS; from += LINE_WINDOW) {
            Arrays.sort(took, from, from + LINE_WINDOW);
            least = Math.min(least, took[from + LINE_WINDOW / 2]);
        }
        return least;
    }
}
