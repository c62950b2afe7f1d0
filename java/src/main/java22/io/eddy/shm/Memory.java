// Words and rings of a memory file through memory segments: JDK 22 and newer.
package io.eddy.shm;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;

/**
 * Access to a mapped memory file. {@code at} is an index into the ring, of which twice its size is mapped, so that no
 * span wraps. Not checked for use after unmap(): callers hold a {@link Guard}.
 */
final class Memory {
    private static final VarHandle LONG = ValueLayout.JAVA_LONG.varHandle();
    private static final VarHandle INT = ValueLayout.JAVA_INT.varHandle();

    final int ringSize;
    private final Mapping mapping;
    private final MemorySegment all;
    private final MemorySegment ring;

    Memory(long address, int ringSize) {
        this.mapping = new Mapping(address, ringSize);
        this.ringSize = ringSize;
        // Views of the ring keep the arena reachable, and with it the mapping.
        Mapping its = mapping;
        all = MemorySegment.ofAddress(address)
                .reinterpret(Layout.HEADER_SIZE + 2L * ringSize, Arena.ofAuto(), segment -> its.run());
        ring = all.asSlice(Layout.HEADER_SIZE);
    }

    long address(int offset) {
        return mapping.address + offset;
    }

    long getAcquire(int offset) {
        return (long) LONG.getAcquire(all, (long) offset);
    }

    void setRelease(int offset, long value) {
        LONG.setRelease(all, (long) offset, value);
    }

    int getIntAcquire(int offset) {
        return (int) INT.getAcquire(all, (long) offset);
    }

    int getIntOpaque(int offset) {
        return (int) INT.getOpaque(all, (long) offset);
    }

    void setIntOpaque(int offset, int value) {
        INT.setOpaque(all, (long) offset, value);
    }

    void incrementRelease(int offset) {
        int ignored = (int) INT.getAndAddRelease(all, (long) offset, 1);
    }

    void get(int at, byte[] into, int from, int size) {
        MemorySegment.copy(ring, ValueLayout.JAVA_BYTE, at, into, from, size);
    }

    void put(int at, byte[] bytes, int from, int size) {
        MemorySegment.copy(bytes, from, ring, ValueLayout.JAVA_BYTE, at, size);
    }

    /** Copies from the ring to the buffer's position, which advances. */
    void get(int at, ByteBuffer into, int size) {
        MemorySegment.copy(ring, at, MemorySegment.ofBuffer(into), 0, size);
        into.position(into.position() + size);
    }

    /** Copies to the ring from the buffer's position, which advances. */
    void put(int at, ByteBuffer bytes, int size) {
        MemorySegment.copy(MemorySegment.ofBuffer(bytes), 0, ring, at, size);
        bytes.position(bytes.position() + size);
    }

    /** The ring as a buffer of its own, for views. It keeps the mapping until it is unreachable. */
    ByteBuffer view() {
        // A buffer ends at 2^31 - 1, where the last span of the largest ring does.
        return ring.asSlice(0, Math.min(2L * ringSize, Integer.MAX_VALUE)).asByteBuffer();
    }

    void unmap() {
        mapping.run();
    }
}
