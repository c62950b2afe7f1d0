// System calls of Linux by JNI: JDK 17 to 21.
package io.eddy.shm;

import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * The system calls that shared memory needs: src/main/native/eddy_shm.c. Results are 0 or more, or the negated errno. Any
 * thread. The class of the same name for JDK 22 and newer has the same methods without a native library.
 *
 * <p>The library is loaded from {@code java.library.path}, or from the jar, by way of a temporary file.
 */
final class Native {
    private static boolean isTried;
    private static String refusal;

    static {
        try {
            refusal();
        } catch (OutOfMemoryError later) {
            // An error here would be that of each later use. refusal() tries again.
        }
    }

    private Native() {}

    private static String load() {
        if (!System.getProperty("os.name").equals("Linux")) {
            return "shared-memory sockets need Linux";
        }
        try {
            System.loadLibrary("eddy_shm");
            return null;
        } catch (UnsatisfiedLinkError notThere) {
            return loadFromJar();
        }
    }

    private static String loadFromJar() {
        String name = "libeddy_shm-" + System.getProperty("os.arch") + ".so";
        try (InputStream library = Native.class.getResourceAsStream("native/" + name)) {
            if (library == null) {
                return "no " + name + " in the jar, and no libeddy_shm.so on java.library.path; JDK 22 needs none";
            }
            Path file = Files.createTempFile("eddy_shm", ".so");
            try {
                // Not by a channel, which needs direct memory.
                try (OutputStream copy = new FileOutputStream(file.toFile())) {
                    library.transferTo(copy);
                }
                System.load(file.toString());
            } finally {
                Files.delete(file);
            }
            return null;
        } catch (IOException | UnsatisfiedLinkError error) {
            return "cannot load " + name + ": " + error.getMessage();
        }
    }

    /** Whether this system can be used at all; the reason if not. Before anything else. */
    static synchronized String refusal() {
        if (!isTried) {
            refusal = load();
            isTried = true;
        }
        return refusal;
    }

    static native int socket();

    static native int socketPair(int[] fds);

    /** {@code name}: sun_path of unix(7), at most 108 bytes. */
    static native int connect(int fd, byte[] name);

    static native int bind(int fd, byte[] name);

    static native int listen(int fd, int backlog);

    static native int accept(int fd);

    static native int shutdown(int fd, int how);

    static native int close(int fd);

    static native int send(int fd, byte[] bytes, int from, int size);

    static native int receive(int fd, byte[] into, int from, int size);

    /** Bytes that receive() would find. */
    static native int available(int fd);

    /** Sends a byte without meaning; one that finds no room is not needed. */
    static native void signal(int fd);

    static native int sendDescriptor(int fd, byte[] bytes, int descriptor);

    /**
     * Receives bytes, and the first descriptor that came with them: {@code found[0]}, or -1. {@code found[1]} is 1 if
     * more came, which are closed, and 2 if some could not be received. SO_LINGER is taken off sockets that come, so that
     * closing one never blocks. {@code peeks}: the bytes stay, and so do the descriptors, of which these are copies.
     */
    static native int receiveMessage(int fd, byte[] into, int from, int[] found, boolean peeks);

    /** A whole number, of SOL_SOCKET. */
    static native int setOption(int fd, int name, int value);

    /** The user, and the process, of a Unix socket's peer: two numbers. */
    static native int peer(int fd, int[] into);

    static native int user();

    /** A new memory file of this size. */
    static native int memoryFile(long size);

    /** Adds all the seals of layout.h. */
    static native int seal(int fd);

    static native int addSeals(int fd, int seals);

    /** 1 for a sealed memory file of this size; 0 for another file. */
    static native int isMemoryFile(int fd, long size);

    /** Pages of a memory file's span that exist, swapped ones among them: cachestat(2), from Linux 6.5 on. */
    static native long existingPages(int fd, long offset, long size);

    static native int pageSize();

    /** Maps the header, and the ring behind it twice. */
    static native long map(int fd, int ringSize, boolean isWritable);

    static native int unmap(long address, long size);

    /** A direct buffer over memory that it does not own. */
    static native ByteBuffer buffer(long address, long size);

    /** Sleeps while the word has this value, at most so long; {@code Long.MAX_VALUE} for no limit. */
    static native void futexWait(long address, int seen, long nanos);

    static native void futexWake(long address);

    /** Whether this process can be part of asymmetric fences, from now on. */
    static native boolean registerFence();

    /** The fence in all processes that are registered. */
    static native void fenceEverywhere();

    /** The processor that this thread runs on; negative if that is unknown. */
    static native int processor();

    /** Has this thread run on one processor, below 64. */
    static native int pin(int processor);

    static native int epollCreate();

    /** {@code operation}: 1 adds, 2 removes, 3 changes. */
    static native int epollControl(int epoll, int operation, int fd, int events, long data);

    /** {@code milliseconds} as epoll_wait(2). */
    static native int epollWait(int epoll, long[] data, int[] events, int milliseconds);

    static native int poll(int fd, int events, int milliseconds);
}
