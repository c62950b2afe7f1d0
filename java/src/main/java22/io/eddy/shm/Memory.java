// Words and rings of a memory file through memory segments: JDK 22 and newer.
package io.eddy.shm;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;

/**
 * Access to a mapped memory file. {@code at} is an index into the ring, of which twice its size is mapped, so that no
 * span wraps. Not checked for use after unmap(): callers hold a {@link Guard}.
 *
 * <p>Words and copies go through one constant segment of all memory: nothing of it is loaded or checked at run time but
 * the address's sign, which the segment of a mapping would be with every access.
 */
final class Memory {
    private static final VarHandle LONG = ValueLayout.JAVA_LONG.varHandle();
    private static final VarHandle INT = ValueLayout.JAVA_INT.varHandle();
    private static final MemorySegment ALL = MemorySegment.NULL.reinterpret(Long.MAX_VALUE);

    final int ringSize;
    private final long base;
    private final long ring;
    private final Mapping mapping;
    private final ByteBuffer buffer;

    private Memory(Mapping mapping) {
        this.mapping = mapping;
        ringSize = mapping.ringSize;
        base = mapping.address();
        ring = base + Layout.HEADER_SIZE;
        long twice = Math.min(2L * ringSize, Layout.MOST_OF_A_BUFFER);
        // Views of the ring keep the arena reachable, and with it the mapping.
        Mapping its = mapping;
        buffer = MemorySegment.ofAddress(ring).reinterpret(twice, Arena.ofAuto(), segment -> its.run()).asByteBuffer();
    }

    /** Maps a memory file of a ring of this size for writing. The descriptor stays the caller's. */
    static Memory map(int file, int ringSize) throws IOException {
        Mapping made = new Mapping(ringSize);
        made.map(file, true);
        return of(made);
    }

    /** The same for reading; {@code room}: a mapping in whose place it is, or null. */
    static Memory mapToRead(int file, int ringSize, Mapping room) throws IOException {
        Mapping made = new Mapping(ringSize);
        if (room == null) {
            made.map(file, false);
        } else {
            made.mapInPlaceOf(room, file, false);
        }
        return of(made);
    }

    private static Memory of(Mapping made) {
        try {
            return new Memory(made);
        } catch (RuntimeException | Error error) {
            made.run();
            throw error;
        }
    }

    long address(int offset) {
        return base + offset;
    }

    long getAcquire(int offset) {
        return (long) LONG.getAcquire(ALL, base + offset);
    }

    void setRelease(int offset, long value) {
        LONG.setRelease(ALL, base + offset, value);
    }

    int getIntAcquire(int offset) {
        return (int) INT.getAcquire(ALL, base + offset);
    }

    int getIntOpaque(int offset) {
        return (int) INT.getOpaque(ALL, base + offset);
    }

    void setIntOpaque(int offset, int value) {
        INT.setOpaque(ALL, base + offset, value);
    }

    void incrementRelease(int offset) {
        int ignored = (int) INT.getAndAddRelease(ALL, base + offset, 1);
    }

    void get(int at, byte[] into, int from, int size) {
        MemorySegment.copy(ALL, ValueLayout.JAVA_BYTE, ring + at, into, from, size);
    }

    void put(int at, byte[] bytes, int from, int size) {
        MemorySegment.copy(bytes, from, ALL, ValueLayout.JAVA_BYTE, ring + at, size);
    }

    /** Sets eight bytes to zero; {@code at} is a multiple of eight. */
    void clearLong(int at) {
        LONG.set(ALL, ring + at, 0L);
    }

    /** Copies from the ring to the buffer's position, which advances. */
    void get(int at, ByteBuffer into, int size) {
        into.put(into.position(), buffer, at, size);
        into.position(into.position() + size);
    }

    /** Copies to the ring from the buffer's position, which advances. */
    void put(int at, ByteBuffer bytes, int size) {
        buffer.put(at, bytes, bytes.position(), size);
        bytes.position(bytes.position() + size);
    }

    /** The ring as a buffer of its own, for views. It keeps the mapping until it is unreachable. */
    ByteBuffer view() {
        return buffer.duplicate();
    }

    void unmap() {
        mapping.run();
    }
}
