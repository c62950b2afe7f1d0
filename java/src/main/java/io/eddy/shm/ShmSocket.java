// java.net.Socket over shared memory.
package io.eddy.shm;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.net.SocketException;
import java.net.SocketOption;
import java.net.StandardSocketOptions;
import java.nio.channels.SocketChannel;
import java.util.Objects;
import java.util.Set;

/**
 * A stream socket over shared memory with another process of this machine, to be used where a {@link java.net.Socket}
 * is. One thread may read while another one writes; close() is for any thread and ends the calls of the others with a
 * SocketException. Bytes that were written before close() reach the peer. Reading yields -1 after the peer finished, and
 * throws an IOException, after everything was read, if it died.
 *
 * <p>Options of TCP can be set and have no effect, but for SO_LINGER: with 0, close() is a reset. It has no
 * {@link SocketChannel}: {@link ShmChannel} is the channel.
 */
public class ShmSocket extends java.net.Socket {
    private final Object stateLock = new Object();
    private final ShmOptions options;
    /** Where connect() goes, whatever address it is given; null for that address. */
    private final ShmSocketAddress fixed;
    private final KeptOptions kept;
    private volatile Connection connection;
    private volatile ShmSocketAddress remote;
    private volatile ShmSocketAddress local;
    private volatile boolean isClosed;
    private InputStream input;
    private OutputStream output;
    private boolean takesUrgent;

    /** Unconnected. */
    public ShmSocket() {
        this(ShmOptions.DEFAULT);
    }

    /** Unconnected. */
    public ShmSocket(ShmOptions options) {
        this((ShmSocketAddress) null, options);
    }

    /** Connected to the listener at this path: a file, {@code @name}, or {@code :port}. */
    public ShmSocket(String path) throws IOException {
        this(path, ShmOptions.DEFAULT);
    }

    /** Connected to the listener at this path: a file, {@code @name}, or {@code :port}. */
    public ShmSocket(String path, ShmOptions options) throws IOException {
        this(options);
        Connector.Made made = Connector.connect(new ShmSocketAddress(path), options, Connection.NEVER, () -> false);
        remote = made.at();
        connection = made.connection();
        local = ShmSocketAddress.UNNAMED;
    }

    /** Connected to the listener at this port, of the own user or root, or of the first of the options' that has one. */
    public ShmSocket(int port) throws IOException {
        this(port, ShmOptions.DEFAULT);
    }

    /** Connected to the listener at this port, of the own user or root, or of the first of the options' that has one. */
    public ShmSocket(int port, ShmOptions options) throws IOException {
        this(pathOf(port), options);
    }

    private static String pathOf(int port) {
        if (port == 0) {
            throw new IllegalArgumentException("Port value out of range: 0");
        }
        return ":" + port;
    }

    /** Unconnected; connects to {@code fixed} where it is not null. */
    ShmSocket(ShmSocketAddress fixed, ShmOptions options) {
        this.options = Objects.requireNonNull(options);
        this.fixed = fixed;
        kept = KeptOptions.ofSocket(options);
    }

    /** Accepted, or one of a pair. */
    ShmSocket(Connection connection, ShmSocketAddress local, ShmOptions options) {
        this((ShmSocketAddress) null, options);
        this.connection = connection;
        this.local = local;
        remote = ShmSocketAddress.UNNAMED;
    }

    /** Both ends of a connection within this process, for two threads. */
    public static ShmSocket[] pair() throws IOException {
        return pair(ShmOptions.DEFAULT);
    }

    /** The same with options. */
    public static ShmSocket[] pair(ShmOptions options) throws IOException {
        Connection[] both = Connector.pair(options);
        return new ShmSocket[] {new ShmSocket(both[0], ShmSocketAddress.UNNAMED, options),
            new ShmSocket(both[1], ShmSocketAddress.UNNAMED, options)};
    }

    private Connection connected() throws SocketException {
        Connection found = connection;
        checkOpen();
        if (found == null) {
            throw new SocketException("Socket is not connected");
        }
        return found;
    }

    private void checkOpen() throws SocketException {
        if (isClosed()) {
            throw new SocketException("Socket is closed");
        }
    }

    private KeptOptions kept() throws SocketException {
        checkOpen();
        return kept;
    }

    // ---- connecting

    @Override
    public void connect(SocketAddress endpoint) throws IOException {
        connect(endpoint, 0);
    }

    /**
     * Connects to a {@link ShmSocketAddress}. A socket of a {@link ShmSocketFactory} connects to the factory's path,
     * whatever the address. {@code milliseconds}: a limit, 0 for that of the options. A failure closes the socket, as that
     * of the JDK's sockets does.
     *
     * @throws IllegalArgumentException for an address of another kind
     */
    @Override
    public void connect(SocketAddress endpoint, int milliseconds) throws IOException {
        if (endpoint == null && fixed == null) {
            throw new IllegalArgumentException("connect: The address can't be null");
        }
        if (milliseconds < 0) {
            throw new IllegalArgumentException("connect: timeout can't be negative");
        }
        checkOpen();
        if (connection != null) {
            throw new SocketException("already connected");
        }
        ShmSocketAddress to = fixed == null || endpoint instanceof ShmSocketAddress ? ShmSocketAddress.of(endpoint) : fixed;
        Connector.Made made = null;
        try {
            made = Connector.connect(to, options, Deadlines.limit(milliseconds), () -> isClosed);
        } finally {
            if (made == null) {
                close();
            }
        }
        synchronized (stateLock) {
            if (!isClosed && connection == null) {
                remote = made.at();
                local = ShmSocketAddress.UNNAMED;
                connection = made.connection();
                return;
            }
        }
        made.connection().close();
        throw new SocketException(isClosed ? "Socket closed" : "already connected");
    }

    /**
     * Has no effect but isBound(): a client has no address of its own.
     *
     * @throws IllegalArgumentException for an address of another kind, but not in a socket of a {@link ShmSocketFactory}
     */
    @Override
    public void bind(SocketAddress address) throws IOException {
        checkOpen();
        if (address != null && fixed == null && !(address instanceof ShmSocketAddress)) {
            throw new IllegalArgumentException("Unsupported address type");
        }
        synchronized (stateLock) {
            if (local != null) {
                throw new SocketException("Already bound");
            }
            local = ShmSocketAddress.UNNAMED;
        }
    }

    // ---- streams

    /** The stream of bytes from the peer. One at a time reads. Closing it closes the socket. */
    @Override
    public InputStream getInputStream() throws IOException {
        Connection its = connected();
        if (its.isInputShut()) {
            throw new SocketException("Socket input is shutdown");
        }
        synchronized (stateLock) {
            if (input == null) {
                input = new Input(this, its);
            }
            return input;
        }
    }

    /** The stream of bytes to the peer, each write of which is one packet. One at a time writes. Closing it closes the socket. */
    @Override
    public OutputStream getOutputStream() throws IOException {
        Connection its = connected();
        if (its.isOutputShut()) {
            throw new SocketException("Socket output is shutdown");
        }
        synchronized (stateLock) {
            if (output == null) {
                output = new Output(this, its);
            }
            return output;
        }
    }

    /** Calls that do not wait, for reading. */
    public ShmReader reader() throws IOException {
        return new ShmReader(connected());
    }

    /** Calls that do not wait, for writing. */
    public ShmWriter writer() throws IOException {
        return new ShmWriter(connected());
    }

    private static final class Input extends InputStream {
        private final ShmSocket socket;
        private final Connection from;

        Input(ShmSocket socket, Connection from) {
            this.socket = socket;
            this.from = from;
        }

        @Override
        public int read() throws IOException {
            return from.read(socket.kept.limit());
        }

        @Override
        public int read(byte[] into, int offset, int length) throws IOException {
            Objects.checkFromIndexSize(offset, length, into.length);
            return length == 0 ? 0 : from.read(into, offset, length, socket.kept.limit());
        }

        @Override
        public int available() throws IOException {
            return from.available();
        }

        @Override
        public void close() throws IOException {
            socket.close();
        }
    }

    private static final class Output extends OutputStream {
        private final ShmSocket socket;
        private final Connection to;

        Output(ShmSocket socket, Connection to) {
            this.socket = socket;
            this.to = to;
        }

        @Override
        public void write(int value) throws IOException {
            to.write(value, Connection.NEVER);
        }

        @Override
        public void write(byte[] bytes, int offset, int length) throws IOException {
            Objects.checkFromIndexSize(offset, length, bytes.length);
            if (length > 0) {
                to.write(bytes, offset, length, Connection.NEVER);
            }
        }

        @Override
        public void flush() throws IOException {
            // Of a Socket it never fails, and close() has flushed.
            if (to.isOpen()) {
                to.flush();
            }
        }

        @Override
        public void close() throws IOException {
            socket.close();
        }
    }

    // ---- ends

    @Override
    public void shutdownInput() throws IOException {
        Connection its = connected();
        if (its.isInputShut()) {
            throw new SocketException("Socket input is already shutdown");
        }
        its.shutdownInput();
    }

    @Override
    public void shutdownOutput() throws IOException {
        Connection its = connected();
        if (its.isOutputShut()) {
            throw new SocketException("Socket output is already shutdown");
        }
        its.shutdownOutput();
    }

    @Override
    public boolean isInputShutdown() {
        Connection its = connection;
        return its != null && its.isInputShut();
    }

    @Override
    public boolean isOutputShutdown() {
        Connection its = connection;
        return its != null && its.isOutputShut();
    }

    /** Bytes that were written before reach the peer. With {@code setSoLinger(true, 0)} it ends them by a reset. */
    @Override
    public void close() throws IOException {
        Connection its;
        synchronized (stateLock) {
            isClosed = true;
            its = connection;
        }
        if (its == null) {
            return;
        }
        if (kept.get(StandardSocketOptions.SO_LINGER) == 0) {
            its.abort();
        } else {
            its.close();
        }
    }

    @Override
    public boolean isClosed() {
        Connection its = connection;
        return isClosed || (its != null && !its.isOpen());
    }

    @Override
    public boolean isConnected() {
        return connection != null;
    }

    @Override
    public boolean isBound() {
        return local != null;
    }

    /** Whether the bytes go over shared memory, and not over the socket. */
    public boolean sharesMemory() {
        Connection its = connection;
        return its != null && its.sharesMemory();
    }

    /** For tests. */
    Guard guardOfReads() {
        return connection.guardOfReads();
    }

    // ---- addresses

    /** That of the listener, null before connect(); unnamed of an accepted socket and of a pair. */
    @Override
    public SocketAddress getRemoteSocketAddress() {
        return connection == null ? null : remote;
    }

    /** Unnamed, null before connect() and bind(); that of the listener of an accepted socket. */
    @Override
    public SocketAddress getLocalSocketAddress() {
        return local;
    }

    /** The loopback address once connected: for what expects one. */
    @Override
    public InetAddress getInetAddress() {
        return connection == null ? null : InetAddress.getLoopbackAddress();
    }

    @Override
    public InetAddress getLocalAddress() {
        return connection == null || isClosed() ? new InetSocketAddress(0).getAddress() : InetAddress.getLoopbackAddress();
    }

    /** That of a listener at a port, else 0. */
    @Override
    public int getPort() {
        return connection == null ? 0 : remote.port();
    }

    /** That of a listener at a port, of an accepted socket; else 0, and -1 before connect() and bind(). */
    @Override
    public int getLocalPort() {
        ShmSocketAddress its = local;
        return its == null ? -1 : its.port();
    }

    /** Null: see {@link ShmChannel}. */
    @Override
    public SocketChannel getChannel() {
        return null;
    }

    // ---- options

    /** Limit of a read in milliseconds, after which it throws a SocketTimeoutException; 0 for none. */
    @Override
    public void setSoTimeout(int milliseconds) throws SocketException {
        kept().setTimeout(milliseconds);
    }

    @Override
    public int getSoTimeout() throws SocketException {
        return kept().timeout();
    }

    @Override
    public void setTcpNoDelay(boolean on) throws SocketException {
        kept().set(StandardSocketOptions.TCP_NODELAY, on);
    }

    @Override
    public boolean getTcpNoDelay() throws SocketException {
        return kept().get(StandardSocketOptions.TCP_NODELAY);
    }

    @Override
    public void setKeepAlive(boolean on) throws SocketException {
        kept().set(StandardSocketOptions.SO_KEEPALIVE, on);
    }

    @Override
    public boolean getKeepAlive() throws SocketException {
        return kept().get(StandardSocketOptions.SO_KEEPALIVE);
    }

    @Override
    public void setReuseAddress(boolean on) throws SocketException {
        kept().set(StandardSocketOptions.SO_REUSEADDR, on);
    }

    @Override
    public boolean getReuseAddress() throws SocketException {
        return kept().get(StandardSocketOptions.SO_REUSEADDR);
    }

    @Override
    public void setSoLinger(boolean on, int seconds) throws SocketException {
        KeptOptions its = kept();
        if (on && seconds < 0) {
            throw new IllegalArgumentException("invalid value for SO_LINGER");
        }
        its.set(StandardSocketOptions.SO_LINGER, on ? seconds : KeptOptions.NO_LINGER);
    }

    @Override
    public int getSoLinger() throws SocketException {
        return kept().get(StandardSocketOptions.SO_LINGER);
    }

    @Override
    public void setOOBInline(boolean on) throws SocketException {
        checkOpen();
        takesUrgent = on;
    }

    @Override
    public boolean getOOBInline() throws SocketException {
        checkOpen();
        return takesUrgent;
    }

    @Override
    public void setTrafficClass(int value) throws SocketException {
        if (value < 0 || value > 255) {
            throw new IllegalArgumentException("tc is not in range 0 -- 255");
        }
        kept().set(StandardSocketOptions.IP_TOS, value);
    }

    @Override
    public int getTrafficClass() throws SocketException {
        return kept().get(StandardSocketOptions.IP_TOS);
    }

    /** Kept; the ring's size is {@link ShmOptions#withRingSize}. */
    @Override
    public void setSendBufferSize(int size) throws SocketException {
        KeptOptions.checkSize(size, "negative send size");
        kept().set(StandardSocketOptions.SO_SNDBUF, size);
    }

    @Override
    public int getSendBufferSize() throws SocketException {
        return kept().get(StandardSocketOptions.SO_SNDBUF);
    }

    /** Kept; the peer chooses the size of the ring that is read. */
    @Override
    public void setReceiveBufferSize(int size) throws SocketException {
        KeptOptions.checkSize(size, "invalid receive size");
        kept().set(StandardSocketOptions.SO_RCVBUF, size);
    }

    @Override
    public int getReceiveBufferSize() throws SocketException {
        return kept().get(StandardSocketOptions.SO_RCVBUF);
    }

    @Override
    public void setPerformancePreferences(int connectionTime, int latency, int bandwidth) {}

    @Override
    public void sendUrgentData(int data) throws IOException {
        throw new SocketException("Urgent data not supported");
    }

    @Override
    public Set<SocketOption<?>> supportedOptions() {
        return kept.names();
    }

    @Override
    public <T> java.net.Socket setOption(SocketOption<T> name, T value) throws IOException {
        Objects.requireNonNull(name);
        kept().set(name, value);
        return this;
    }

    @Override
    public <T> T getOption(SocketOption<T> name) throws IOException {
        Objects.requireNonNull(name);
        return kept().get(name);
    }

    @Override
    public String toString() {
        ShmSocketAddress its = remote == ShmSocketAddress.UNNAMED ? local : remote;
        return "ShmSocket[" + (connection == null ? "unconnected" : its) + "]";
    }
}
