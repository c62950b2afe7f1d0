// Words and rings of a memory file through direct buffers: JDK 17 to 21.
package io.eddy.shm;

import java.io.IOException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.lang.ref.Cleaner;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * Access to a mapped memory file. {@code at} is an index into the ring, of which twice its size is mapped, so that no
 * span wraps. Not checked for use after unmap(): callers hold a {@link Guard}.
 */
final class Memory {
    private static final VarHandle LONG = MethodHandles.byteBufferViewVarHandle(long[].class, ByteOrder.nativeOrder());
    private static final VarHandle INT = MethodHandles.byteBufferViewVarHandle(int[].class, ByteOrder.nativeOrder());
    private static final Cleaner CLEANER = Cleaner.create();

    final int ringSize;
    private final Mapping mapping;
    private final ByteBuffer header;
    private final ByteBuffer ring;

    private Memory(Mapping mapping) {
        this.mapping = mapping;
        ringSize = mapping.ringSize;
        header = Native.buffer(mapping.address(), Layout.HEADER_SIZE);
        ring = Native.buffer(mapping.address() + Layout.HEADER_SIZE, Math.min(2L * ringSize, Layout.MOST_OF_A_BUFFER));
        // Views of the ring keep it reachable, and with it the mapping.
        CLEANER.register(ring, mapping);
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
        return mapping.address() + offset;
    }

    long getAcquire(int offset) {
        return (long) LONG.getAcquire(header, offset);
    }

    void setRelease(int offset, long value) {
        LONG.setRelease(header, offset, value);
    }

    int getIntAcquire(int offset) {
        return (int) INT.getAcquire(header, offset);
    }

    int getIntOpaque(int offset) {
        return (int) INT.getOpaque(header, offset);
    }

    void setIntOpaque(int offset, int value) {
        INT.setOpaque(header, offset, value);
    }

    void incrementRelease(int offset) {
        INT.getAndAddRelease(header, offset, 1);
    }

    void get(int at, byte[] into, int from, int size) {
        ring.get(at, into, from, size);
    }

    void put(int at, byte[] bytes, int from, int size) {
        ring.put(at, bytes, from, size);
    }

    /** Sets eight bytes to zero; {@code at} is a multiple of eight. */
    void clearLong(int at) {
        ring.putLong(at, 0);
    }

    /** Copies from the ring to the buffer's position, which advances. */
    void get(int at, ByteBuffer into, int size) {
        into.put(into.position(), ring, at, size);
        into.position(into.position() + size);
    }

    /** Copies to the ring from the buffer's position, which advances. */
    void put(int at, ByteBuffer bytes, int size) {
        ring.put(at, bytes, bytes.position(), size);
        bytes.position(bytes.position() + size);
    }

    /** The ring as a buffer of its own, for views. It keeps the mapping until it is unreachable. */
    ByteBuffer view() {
        return ring.duplicate();
    }

    void unmap() {
        mapping.run();
    }
}
