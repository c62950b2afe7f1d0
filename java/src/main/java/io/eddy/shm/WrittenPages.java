// Pages of a peer's ring that the peer has written: src/shm/written_pages.hpp in Java.
package io.eddy.shm;

import java.util.concurrent.atomic.AtomicInteger;

/**
 * Check of what is published in the first lap around a large ring, by cachestat(2): the kernel allocates pages that were
 * never written for the process that reads them, and counts them as its memory, up to 1 GiB. Afterwards all pages exist. A
 * small ring is not checked, since that would take a descriptor for each connection, and the own ring costs as much. One
 * thread, but close().
 */
final class WrittenPages {
    /** Largest ring without a check. */
    static final int SMALL_RING = 256 * 1024;
    private static volatile int limitOfTests = SMALL_RING;

    private final AtomicInteger file;
    private final int ringSize;
    private final long pageSize = Native.pageSize();
    /** Positions up to this one need no check. */
    private long known;
    private final long lapEnd;
    private volatile boolean isDone;

    /** {@code file}: the peer's memory file, which is this object's from now on; {@code begin}: the peer's first position. */
    WrittenPages(int file, long begin, int ringSize) {
        this.file = new AtomicInteger(file);
        this.ringSize = ringSize;
        known = begin;
        lapEnd = begin + ringSize;
    }

    /** Whether a peer's ring of this size is checked. Any thread. */
    static boolean areChecked(int ringSize) {
        return ringSize > limitOfTests;
    }

    /** Another limit than SMALL_RING, for tests. Any thread. */
    static void limitTo(int smallRing) {
        limitOfTests = smallRing;
    }

    /** Whether there is nothing left to check: after a lap, and with a kernel before Linux 6.5. */
    boolean isDone() {
        return isDone;
    }

    /** Whether all bytes up to this position are in pages that were written. */
    boolean reach(long to) {
        if (isDone || to - known <= 0) {
            return true;
        }
        // A ring is whole pages, so positions and offsets have the same ends of pages.
        long begin = known & -pageSize;
        long last = to - lapEnd < 0 ? to : lapEnd;
        long end = (last + pageSize - 1) & -pageSize;
        long offset = begin & (ringSize - 1);
        long size = end - begin;
        long first = Math.min(size, ringSize - offset);
        if (!exist(offset, first) || !exist(0, size - first)) {
            return false;
        }
        known = end;
        if (known - lapEnd >= 0) {
            close();
        }
        return true;
    }

    private boolean exist(long offset, long size) {
        if (size == 0 || isDone) {
            return true;
        }
        long count = Native.existingPages(file.get(), Layout.HEADER_SIZE + offset, size);
        if (count < 0) {
            close();
            return true;
        }
        return count >= size / pageSize;
    }

    /** Any thread; no check may be under way in another one. */
    void close() {
        isDone = true;
        int its = file.getAndSet(-1);
        if (its >= 0) {
            Native.close(its);
        }
    }
}
