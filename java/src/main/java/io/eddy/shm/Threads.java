// Kinds of threads, and of processors that they run on.
package io.eddy.shm;

import java.io.File;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.nio.charset.StandardCharsets;

/** Facts about threads and processors. */
final class Threads {
    /** Thread.isVirtual(), which JDK 17 does not have; null there. */
    private static final MethodHandle IS_VIRTUAL = findIsVirtual();

    /** Whether a thread that spins may keep its peer from running: one processor, or a quota of their time. */
    static final boolean SPINNING_TAKES_TURNS = Runtime.getRuntime().availableProcessors() < 2 || hasQuota();

    private Threads() {}

    private static MethodHandle findIsVirtual() {
        try {
            return MethodHandles.publicLookup()
                    .findVirtual(Thread.class, "isVirtual", MethodType.methodType(boolean.class));
        } catch (ReflectiveOperationException error) {
            return null;
        }
    }

    static boolean isVirtual() {
        try {
            return IS_VIRTUAL != null && (boolean) IS_VIRTUAL.invokeExact(Thread.currentThread());
        } catch (Throwable error) {
            throw Errors.unchecked(error);
        }
    }

    /** Starts a daemon thread that takes nothing over from the thread that happens to start it. */
    static void start(String name, Runnable work) {
        Thread thread = new Thread(null, work, name, 0, false);
        thread.setDaemon(true);
        thread.setContextClassLoader(null);
        Faults.at("thread");
        thread.start();
    }

    /** Not by a channel, as those of {@code Files} are: that needs direct memory, and an error here is one for good. */
    static String contentOf(String path) throws IOException {
        try (InputStream file = new FileInputStream(path)) {
            return new String(file.readAllBytes(), StandardCharsets.UTF_8);
        }
    }

    /** A quota of the control group, or of one above it; cgroups(7), version 2. */
    private static boolean hasQuota() {
        try {
            String path = "";
            for (String line : contentOf("/proc/self/cgroup").split("\n")) {
                if (line.startsWith("0::")) {
                    path = line.substring(3);
                }
            }
            for (;;) {
                String limit = "/sys/fs/cgroup" + path + "/cpu.max";
                if (new File(limit).canRead() && !contentOf(limit).startsWith("max")) {
                    return true;
                }
                int slash = path.lastIndexOf('/');
                if (slash < 0) {
                    return false;
                }
                path = path.substring(0, slash);
            }
        } catch (IOException error) {
            return false;
        }
    }
}
