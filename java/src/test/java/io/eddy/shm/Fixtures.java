// Fixtures of the tests: names, connected sockets, deadlines, and programs beside this one.
package io.eddy.shm;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.InputStream;
import java.net.Socket;
import java.nio.file.Path;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;

final class Fixtures {
    /** How long anything may take before it counts as broken. */
    static final long DEADLINE_S = 60;
    private static final AtomicInteger COUNT = new AtomicInteger();

    private Fixtures() {}

    /** An abstract name of a test's own. */
    static String name() {
        return "@eddy-test-" + ProcessHandle.current().pid() + "-" + COUNT.incrementAndGet();
    }

    interface Condition {
        boolean isTrue() throws Exception;
    }

    static void eventually(String what, Condition condition) throws Exception {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(DEADLINE_S);
        while (!condition.isTrue()) {
            assertTrue(System.nanoTime() < end, what + " did not come true");
            Thread.sleep(2);
        }
    }

    /** Waits until a thread is within this method. */
    static void awaitCall(Thread of, String method) throws Exception {
        eventually(method + "()", () -> Stream.of(of.getStackTrace()).anyMatch(call -> call.getMethodName().equals(method)));
    }

    /** The work in a thread of its own. */
    static <T> CompletableFuture<T> inThread(Callable<T> work) {
        CompletableFuture<T> made = new CompletableFuture<>();
        Thread thread = new Thread(() -> {
            try {
                made.complete(work.call());
            } catch (Throwable error) {
                made.completeExceptionally(error);
            }
        });
        thread.setDaemon(true);
        thread.start();
        return made;
    }

    static <T> T get(CompletableFuture<T> from) throws Exception {
        return from.get(DEADLINE_S, TimeUnit.SECONDS);
    }

    /** A client and what a listener accepted of it. */
    static Socket[] connected(ShmOptions options) throws Exception {
        String name = name();
        try (ShmServerSocket server = new ShmServerSocket(name, options)) {
            CompletableFuture<Socket> accepted = inThread(server::accept);
            ShmSocket client = new ShmSocket(name, options);
            return new Socket[] {client, get(accepted)};
        }
    }

    static byte[] random(int size, long seed) {
        byte[] made = new byte[size];
        new Random(seed).nextBytes(made);
        return made;
    }

    static byte[] readExactly(InputStream from, int size) throws IOException {
        byte[] got = from.readNBytes(size);
        assertTrue(got.length == size, got.length + " of " + size + " bytes came");
        return got;
    }

    /** A JVM that runs a class of the tests. */
    static Process java(Class<?> main, String... arguments) throws IOException {
        return java(List.of(), main, arguments);
    }

    /** The same with options of the JVM. */
    static Process java(List<String> options, Class<?> main, String... arguments) throws IOException {
        return new ProcessBuilder(javaCommand(options, main, arguments)).redirectError(ProcessBuilder.Redirect.INHERIT).start();
    }

    static List<String> javaCommand(List<String> options, Class<?> main, String... arguments) {
        List<String> command = new java.util.ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(options);
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), main.getName()));
        command.addAll(List.of(arguments));
        return command;
    }

    /** Descriptors and mappings of shared memory that this process has. */
    static long resources() throws IOException {
        long found = 0;
        try (var files = java.nio.file.Files.list(Path.of("/proc/self/fd"))) {
            found += files.count();
        }
        try (var lines = java.nio.file.Files.lines(Path.of("/proc/self/maps"))) {
            found += lines.filter(line -> line.contains("/memfd:")).count();
        }
        return found;
    }
}
