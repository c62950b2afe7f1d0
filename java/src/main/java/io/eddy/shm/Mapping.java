// Lifetime of the mapping of one memory file.
package io.eddy.shm;

import java.util.concurrent.atomic.AtomicBoolean;

/** A mapped memory file: header, and the ring twice. Unmapped once, by close() or by the garbage collector. */
final class Mapping implements Runnable {
    final long address;
    final int ringSize;
    private final AtomicBoolean isUnmapped = new AtomicBoolean();

    Mapping(long address, int ringSize) {
        this.address = address;
        this.ringSize = ringSize;
    }

    /** Any thread. No access may be under way, or follow. */
    @Override
    public void run() {
        if (isUnmapped.compareAndSet(false, true)) {
            Native.unmap(address, Layout.HEADER_SIZE + 2L * ringSize);
        }
    }
}
