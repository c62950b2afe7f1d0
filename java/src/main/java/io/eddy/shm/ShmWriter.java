// Low-level writing that does not wait.
package io.eddy.shm;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Objects;

/**
 * The writing half of a connection, without waiting. Bounded twice: by the bytes of its ring, and by
 * {@link ShmOptions#withMaxPackets}, the flushes that were not read. At either limit write() does nothing and returns 0,
 * until the peer reads. One thread at a time; close() of the connection is for any. All methods throw a SocketException
 * after close(), after finish(), and once the peer has gone.
 */
public final class ShmWriter {
    private final Connection to;
    private ByteBuffer view;

    ShmWriter(Connection to) {
        this.to = to;
    }

    /** Appends bytes to the packet that flush() sends: how many there was room for, 0 at a limit. */
    public int write(byte[] bytes) throws IOException {
        return to.append(bytes, 0, bytes.length);
    }

    /** Appends bytes to the packet that flush() sends: how many there was room for, 0 at a limit. */
    public int write(byte[] bytes, int offset, int length) throws IOException {
        Objects.checkFromIndexSize(offset, length, bytes.length);
        return to.append(bytes, offset, length);
    }

    /** The same from a buffer, whose position advances. */
    public int write(ByteBuffer bytes) throws IOException {
        return to.append(bytes);
    }

    /** Has the peer read what was written: one packet. Without bytes, nothing. */
    public void flush() throws IOException {
        to.flush();
    }

    /**
     * Room to write to, where the peer will read it; empty at a limit. Always the same object; followed by append().
     * After room(), the memory is unmapped by the garbage collector, once no view is reachable.
     */
    public ByteBuffer room() throws IOException {
        if (view == null) {
            view = to.viewToWrite().order(ByteOrder.nativeOrder());
        }
        to.room(view);
        return view;
    }

    /**
     * The first bytes of room() belong to the packet that flush() sends. They have been written: the peer ends the connection
     * at pages of a large ring that never were.
     */
    public void append(int size) throws IOException {
        to.advance(size);
    }

    /**
     * Waits for room, by spinning and then sleeping as the options say. Bytes that fill the whole ring are flushed, since
     * the peer could make no room otherwise: as a packet of their own where {@link ShmOptions#withPackets} keeps these apart.
     */
    public void await() throws IOException {
        to.awaitRoom(1, Connection.NEVER);
    }

    /** Flushes; no bytes follow. */
    public void finish() throws IOException {
        to.shutdownOutput();
    }
}
