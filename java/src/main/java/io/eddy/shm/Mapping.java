// Lifetime of the mapping of one memory file.
package io.eddy.shm;

import java.io.IOException;
import java.util.concurrent.atomic.AtomicBoolean;

/** A mapped memory file: header, and the ring twice. Unmapped once, by close() or by the garbage collector. */
final class Mapping implements Runnable {
    final int ringSize;
    private long address;
    private final AtomicBoolean isMapped = new AtomicBoolean();

    /** Of nothing yet: once there is a mapping, no allocation may fail before something is there that unmaps it. */
    Mapping(int ringSize) {
        this.ringSize = ringSize;
    }

    /** Fails with an IOException where there is no address space, or the file cannot be mapped so. Once. */
    void map(int file, boolean isWritable) throws IOException {
        long made = Native.map(file, ringSize, isWritable);
        if (made < 0) {
            throw Errors.of("mmap", (int) made);
        }
        address = made;
        isMapped.set(true);
    }

    long address() {
        return address;
    }

    /** Any thread. No access may be under way, or follow. */
    @Override
    public void run() {
        if (isMapped.compareAndSet(true, false)) {
            Native.unmap(address, Layout.HEADER_SIZE + 2L * ringSize);
        }
    }
}
