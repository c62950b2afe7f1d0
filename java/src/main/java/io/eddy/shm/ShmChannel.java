// Channel over shared memory, which a selector can wait for.
package io.eddy.shm;

import java.io.IOException;
import java.net.SocketException;
import java.nio.ByteBuffer;
import java.nio.channels.AsynchronousCloseException;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.GatheringByteChannel;
import java.nio.channels.InterruptibleChannel;
import java.nio.channels.Pipe;
import java.nio.channels.ScatteringByteChannel;
import java.nio.channels.SelectableChannel;
import java.nio.channels.spi.AbstractInterruptibleChannel;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * A channel over shared memory: blocking, or not. One thread reads while another one writes; close() is for any thread
 * and ends the calls of the others with an AsynchronousCloseException. An interrupt of a thread in a blocking call closes
 * the channel; the call throws a ClosedByInterruptException.
 *
 * <p>For a {@link java.nio.channels.Selector}, register {@link #selectable()} for OP_READ. The JDK gives no access to the
 * descriptors of its channels, and takes none of others, so that is a pipe of the JDK, to which the thread that reads
 * this library's sockets writes a byte when the peer signals: one thread more than a SocketChannel needs.
 */
public final class ShmChannel
        implements ScatteringByteChannel, GatheringByteChannel, java.nio.channels.ByteChannel, InterruptibleChannel {
    private final Connection connection;
    private final boolean hasSocketDoorbell;
    private final AtomicBoolean isSignalled = new AtomicBoolean();
    private volatile boolean isBlocking = true;
    private volatile Pipe bell;
    private ByteBuffer bellByte;
    private final Interrupts interrupts = new Interrupts();

    /** Around waits: the JDK calls it for a thread that is interrupted. The channel's own close() waits for calls to end. */
    private final class Interrupts extends AbstractInterruptibleChannel {
        @Override
        protected void implCloseChannel() {
            connection.closeLater();
        }

        void enter() {
            begin();
        }

        void leave(boolean isCompleted) throws AsynchronousCloseException {
            end(isCompleted);
        }
    }

    ShmChannel(Connection connection, boolean hasSocketDoorbell) {
        this.connection = connection;
        this.hasSocketDoorbell = hasSocketDoorbell;
    }

    /** Connected to the listener at this path, a file or {@code @name}. */
    public static ShmChannel connect(String path) throws IOException {
        return connect(path, ShmOptions.DEFAULT);
    }

    /** The same with options, but always with {@link ShmOptions.Doorbell#SOCKET}. */
    public static ShmChannel connect(String path, ShmOptions options) throws IOException {
        ShmOptions chosen = options.withDoorbell(ShmOptions.Doorbell.SOCKET);
        Connector.Made made = Connector.connect(new ShmSocketAddress(path), chosen, Connection.NEVER, () -> false);
        return new ShmChannel(made.connection(), true);
    }

    /** Both ends of a connection within this process. */
    public static ShmChannel[] pair(ShmOptions options) throws IOException {
        Connection[] both = Connector.pair(options.withDoorbell(ShmOptions.Doorbell.SOCKET));
        return new ShmChannel[] {new ShmChannel(both[0], true), new ShmChannel(both[1], true)};
    }

    /** Whether read() and write() wait, as they do at first. */
    public ShmChannel configureBlocking(boolean isBlocking) {
        this.isBlocking = isBlocking;
        return this;
    }

    /** Whether read() and write() wait. */
    public boolean isBlocking() {
        return isBlocking;
    }

    /**
     * What a selector registers for OP_READ, for a channel that is not blocking. It is ready when read() has returned 0
     * and there are bytes or the end, or when write() has written less than it was given and there is room: call both, as
     * far as you want them, until they return 0 again; that is also what resets it. It may be ready once more after all
     * bytes were read, as the notification of them may come late. Closed with this channel.
     *
     * @throws UnsupportedOperationException if it was accepted by a listener without {@link ShmOptions.Doorbell#SOCKET}, or
     *     has no shared memory
     */
    public synchronized SelectableChannel selectable() throws IOException {
        if (!isOpen()) {
            throw new ClosedChannelException();
        }
        if (!hasSocketDoorbell || !connection.sharesMemory()) {
            throw new UnsupportedOperationException("selectors need shared memory and the doorbell SOCKET");
        }
        if (bell == null) {
            bellByte = ByteBuffer.allocateDirect(1);
            Pipe made = Pipe.open();
            made.source().configureBlocking(false);
            made.sink().configureBlocking(false);
            bell = made;
            connection.setListener(this::signal);
            connection.armForBytes();
            // The peer may have signalled before.
            signal();
        }
        return bell.source();
    }

    private void signal() {
        if (!isSignalled.compareAndSet(false, true)) {
            return;
        }
        boolean isWritten = false;
        try {
            // Memory of its own: on the thread of all connections, no allocation may fail.
            synchronized (bellByte) {
                bell.sink().write(bellByte.clear());
            }
            isWritten = true;
        } catch (IOException closed) {
            // The channel is, too.
        } finally {
            if (!isWritten) {
                isSignalled.set(false);
            }
        }
    }

    /** Before a call: a signal from now on is seen by it, or repeated. True if there was one, maybe for the other direction. */
    private boolean resetBell() throws IOException {
        if (!isSignalled.get()) {
            return false;
        }
        bell.source().read(ByteBuffer.allocate(16));
        isSignalled.set(false);
        return true;
    }

    /** Calls that do not wait, for reading. */
    public ShmReader reader() {
        return new ShmReader(connection);
    }

    /** Calls that do not wait, for writing. */
    public ShmWriter writer() {
        return new ShmWriter(connection);
    }

    private void checkOpen() throws ClosedChannelException {
        if (!connection.isOpen()) {
            throw new ClosedChannelException();
        }
    }

    /** Another thread has closed it during a call. */
    private IOException ended(SocketException error) {
        return connection.isOpen() ? error : new AsynchronousCloseException();
    }

    /** Of a thread that was interrupted before: this ends the call, and the channel. */
    private void checkInterrupt() throws IOException {
        if (isBlocking && Thread.currentThread().isInterrupted()) {
            interrupts.enter();
            interrupts.leave(false);
        }
    }

    /** For bytes, or for room for so many. */
    private void await(boolean forReading, int wanted) throws IOException {
        boolean isCompleted = false;
        interrupts.enter();
        try {
            if (forReading) {
                connection.awaitBytes(Connection.NEVER);
            } else {
                connection.awaitRoom(wanted, Connection.NEVER);
            }
            isCompleted = true;
        } finally {
            interrupts.leave(isCompleted);
        }
    }

    /** How many bytes were read, of one packet where {@link ShmOptions#withPackets} keeps these apart; 0, if it is not blocking, while there are none; -1 at the end. */
    @Override
    public int read(ByteBuffer into) throws IOException {
        checkOpen();
        if (!into.hasRemaining()) {
            return 0;
        }
        checkInterrupt();
        try {
            return readSome(into);
        } catch (SocketException error) {
            throw ended(error);
        }
    }

    private int readSome(ByteBuffer into) throws IOException {
        if (!isBlocking) {
            if (resetBell() && connection.hasRoomCome()) {
                signal();
            }
            return connection.tryRead(into, true);
        }
        for (;;) {
            int got = connection.tryRead(into, false);
            if (got != 0) {
                return got;
            }
            await(true, 1);
        }
    }

    @Override
    public long read(ByteBuffer[] into, int offset, int length) throws IOException {
        Objects.checkFromIndexSize(offset, length, into.length);
        long all = 0;
        for (int i = offset; i < offset + length; ++i) {
            if (!into[i].hasRemaining()) {
                continue;
            }
            int got;
            if (all == 0) {
                got = read(into[i]);
            } else {
                // Only the first one waits. An error comes again with the next call, after these bytes.
                try {
                    got = connection.tryRead(into[i], false);
                } catch (IOException later) {
                    return all;
                }
            }
            if (got < 0) {
                return all == 0 ? -1 : all;
            }
            all += got;
            if (into[i].hasRemaining() || connection.isBetweenPackets()) {
                break;
            }
        }
        return all;
    }

    @Override
    public long read(ByteBuffer[] into) throws IOException {
        return read(into, 0, into.length);
    }

    /**
     * Writes all, if it is blocking; else as much as there is room for, and of a packet that {@link ShmOptions#withPackets}
     * keeps apart all or nothing. One packet is flushed.
     */
    @Override
    public int write(ByteBuffer bytes) throws IOException {
        return (int) write(new ByteBuffer[] {bytes}, 0, 1);
    }

    @Override
    public long write(ByteBuffer[] bytes, int offset, int length) throws IOException {
        Objects.checkFromIndexSize(offset, length, bytes.length);
        checkOpen();
        checkInterrupt();
        try {
            return writeSome(bytes, offset, length);
        } catch (SocketException error) {
            throw ended(error);
        }
    }

    private long writeSome(ByteBuffer[] bytes, int offset, int length) throws IOException {
        if (!isBlocking && resetBell() && connection.haveBytesCome()) {
            signal();
        }
        if (connection.keepsPackets() && !awaitPacketRoom(bytes, offset, length)) {
            return 0;
        }
        long all = 0;
        for (int i = offset; i < offset + length; ++i) {
            while (bytes[i].hasRemaining()) {
                int sent = connection.append(bytes[i]);
                all += sent;
                if (sent > 0) {
                    continue;
                }
                connection.flush();
                if (isBlocking) {
                    await(false, 1);
                } else if (!connection.sharesMemory() || !connection.armForRoom(1)) {
                    return all;
                }
            }
        }
        connection.flush();
        return all;
    }

    /** Room for one packet of all these. False, if it is not blocking, until the selector finds that there is more. */
    private boolean awaitPacketRoom(ByteBuffer[] bytes, int offset, int length) throws IOException {
        long size = 0;
        for (int i = offset; i < offset + length; ++i) {
            size += bytes[i].remaining();
        }
        while (!connection.hasPacketRoom(size)) {
            if (isBlocking) {
                await(false, (int) size);
            } else if (!connection.armForRoom((int) size)) {
                return false;
            }
        }
        return true;
    }

    @Override
    public long write(ByteBuffer[] bytes) throws IOException {
        return write(bytes, 0, bytes.length);
    }

    /** Reading yields the end from now on. */
    public ShmChannel shutdownInput() throws IOException {
        connection.shutdownInput();
        return this;
    }

    /** No more bytes follow. */
    public ShmChannel shutdownOutput() throws IOException {
        connection.shutdownOutput();
        return this;
    }

    /** Whether the bytes go over shared memory, and not over the socket. */
    public boolean sharesMemory() {
        return connection.sharesMemory();
    }

    @Override
    public boolean isOpen() {
        return connection.isOpen();
    }

    @Override
    public synchronized void close() throws IOException {
        connection.close();
        if (bell != null) {
            bell.sink().close();
            bell.source().close();
        }
    }
}
