// Kinds of threads, and of processors that they run on.
package io.eddy.shm;

import java.io.IOException;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.nio.file.Files;
import java.nio.file.Path;

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
            throw new AssertionError(error);
        }
    }

    /** A quota of the control group, or of one above it; cgroups(7), version 2. */
    private static boolean hasQuota() {
        try {
            String path = "";
            for (String line : Files.readAllLines(Path.of("/proc/self/cgroup"))) {
                if (line.startsWith("0::")) {
                    path = line.substring(3);
                }
            }
            for (;;) {
                Path limit = Path.of("/sys/fs/cgroup" + path + "/cpu.max");
                if (Files.isReadable(limit) && !Files.readString(limit).startsWith("max")) {
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
