// Low-level reading that does not wait.
package io.eddy.shm;

import java.io.IOException;
import java.net.SocketException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Objects;

/**
 * The reading half of a connection, without waiting. The writer may be in another process or another thread of this one.
 * One thread at a time; close() of the connection is for any. All methods throw a SocketException after close(), and,
 * after everything was read, if the peer died.
 */
public final class ShmReader {
    private final Connection from;
    private ByteBuffer view;

    ShmReader(Connection from) {
        this.from = from;
    }

    /**
     * Copies bytes that were flushed: how many, 0 while there are none, -1 once the peer has finished. At most those of one
     * packet where {@link ShmOptions#withPackets} keeps these apart.
     */
    public int read(byte[] into) throws IOException {
        return from.tryRead(into, 0, into.length, false);
    }

    /** Copies bytes that were flushed: how many, 0 while there are none, -1 once the peer has finished. */
    public int read(byte[] into, int offset, int length) throws IOException {
        Objects.checkFromIndexSize(offset, length, into.length);
        return from.tryRead(into, offset, length, false);
    }

    /** The same into a buffer, whose position advances. */
    public int read(ByteBuffer into) throws IOException {
        return from.tryRead(into, false);
    }

    /**
     * Bytes of the next packet, or those of it that read() has left; 0 while there are none. Where
     * {@link ShmOptions#withPackets} does not keep packets apart, all that can be read.
     */
    public int packetSize() throws IOException {
        return from.packetBytes();
    }

    /** How many bytes can be read, of all packets. */
    public int available() throws IOException {
        return from.available();
    }

    /**
     * The bytes to read, where they lie: a read-only view, empty while there are none, null once the peer has finished.
     * Of one packet where {@link ShmOptions#withPackets} keeps these apart. Always the same object. Its bytes stay valid until consume(); a peer that is not trusted may change them. On JDK 22
     * and newer, {@code MemorySegment.ofBuffer(reader.peek())} is the segment. After peek(), the memory is unmapped by
     * the garbage collector, once no view is reachable.
     */
    public ByteBuffer peek() throws IOException {
        if (view == null) {
            view = from.viewToRead().order(ByteOrder.nativeOrder());
        }
        return from.peek(view) ? view : null;
    }

    /** Returns the room of the first bytes of peek() to the writer. */
    public void consume(int size) throws IOException {
        from.consume(size);
    }

    /** Waits for bytes, by spinning and then sleeping as the options say: false once the peer has finished. */
    public boolean await() throws IOException {
        return from.awaitBytes(Connection.NEVER);
    }

    /** The same, at most for this time: then a SocketTimeoutException. */
    public boolean await(long nanos) throws IOException {
        if (nanos < 0) {
            throw new SocketException("a wait cannot last " + nanos + " ns");
        }
        return from.awaitBytes(nanos);
    }
}
