// Lifetime of the mapping of one memory file, and the limit of all.
package io.eddy.shm;

import java.io.IOException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

/** A mapped memory file: header, and the ring twice. Unmapped once, by close() or by the garbage collector. */
final class Mapping implements Runnable {
    /** Entries of the kernel's count: the ring's second mapping is one of its own. */
    private static final int MAPPINGS_OF_ONE = 2;
    private static final int USUAL_MAX_MAP_COUNT = 65_530;

    private static final AtomicInteger MEMORIES = new AtomicInteger();
    /** 0 until the kernel's limit has been read. */
    private static volatile int usualMost;
    private static volatile int limitOfTests = Integer.MAX_VALUE;

    final int ringSize;
    private long address;
    private final AtomicBoolean isMapped = new AtomicBoolean();

    /** Of nothing yet: once there is a mapping, no allocation may fail before something is there that unmaps it. */
    Mapping(int ringSize) {
        this.ringSize = ringSize;
    }

    /**
     * Limit of mapped memories: three quarters of the process's limit of mappings. The rest is the JVM's, which ends where
     * its threads and its heap can have none. Any thread.
     */
    static int mostMemories() {
        return Math.min(usualMost(), limitOfTests);
    }

    /** A lower limit, for tests. Any thread. */
    static void limitMemories(int most) {
        limitOfTests = most;
    }

    /** Read with the first memory, not with the class, for which an OutOfMemoryError would be one for good. */
    private static int usualMost() {
        int most = usualMost;
        if (most == 0) {
            try {
                most = mostOf(Integer.parseInt(Threads.contentOf("/proc/sys/vm/max_map_count").trim()));
            } catch (IOException | NumberFormatException unknown) {
                return mostOf(USUAL_MAX_MAP_COUNT);
            }
            usualMost = most;
        }
        return most;
    }

    private static int mostOf(int maxMapCount) {
        return maxMapCount / 4 * 3 / MAPPINGS_OF_ONE;
    }

    /**
     * Fails with an IOException where there is no address space, at mostMemories(), or where the file cannot be mapped so.
     * Once.
     */
    void map(int file, boolean isWritable) throws IOException {
        int most = mostMemories();
        mapCounted(file, isWritable, MEMORIES.getAndIncrement() < most);
    }

    /** map() to the room of another mapping, which ends. */
    void mapInPlaceOf(Mapping other, int file, boolean isWritable) throws IOException {
        if (other.isMapped.compareAndSet(true, false)) {
            Native.unmap(other.address, Layout.HEADER_SIZE + 2L * other.ringSize);
            mapCounted(file, isWritable, true);
        } else {
            map(file, isWritable);
        }
    }

    private void mapCounted(int file, boolean isWritable, boolean hasRoom) throws IOException {
        try {
            long made = hasRoom ? Native.map(file, ringSize, isWritable) : -Errors.ENOMEM;
            if (made < 0) {
                throw Errors.of("mmap", (int) made);
            }
            address = made;
            isMapped.set(true);
        } finally {
            if (!isMapped.get()) {
                MEMORIES.decrementAndGet();
            }
        }
    }

    long address() {
        return address;
    }

    /** Any thread. No access may be under way, or follow. */
    @Override
    public void run() {
        if (isMapped.compareAndSet(true, false)) {
            Native.unmap(address, Layout.HEADER_SIZE + 2L * ringSize);
            MEMORIES.decrementAndGet();
        }
    }
}
