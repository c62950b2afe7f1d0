// java.net.ServerSocket over shared memory.
package io.eddy.shm;

import java.io.IOException;
import java.lang.ref.Cleaner;
import java.lang.ref.Reference;
import java.net.BindException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketAddress;
import java.net.SocketException;
import java.net.SocketOption;
import java.net.StandardSocketOptions;
import java.nio.channels.ServerSocketChannel;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ThreadLocalRandom;

/**
 * A listener for {@link ShmSocket}s. Its socket is a file that the own user alone may connect to (mode 0600), or
 * {@code @name}; the peer's user is checked as well: {@link ShmOptions#withAllowedUsers}. Peers that stall or break the
 * protocol hold up no others: of 128 connections that are being made or wait for accept(), one more ends the oldest
 * handshake of the process that has most of them under way. docs/shm.md names what an allowed
 * user can still do with descriptors. Options of TCP are kept and have no effect. Any thread.
 */
public class ShmServerSocket extends ServerSocket {
    /** Of those that are chosen for a socket without one. */
    private static final int FREE_PORTS = Layout.LAST_FREE_PORT - Layout.FIRST_FREE_PORT + 1;

    private final ShmOptions options;
    /** Where bind() goes, whatever address it is given; null for that address. */
    private final ShmSocketAddress fixed;
    private volatile Acceptor acceptor;
    /** Reachable as long as the listener is: what is dropped without close() is closed by it. */
    private final Object owner = new Object();
    private Cleaner.Cleanable cleanable;
    private volatile boolean isClosed;
    private final KeptOptions kept;

    /** Not bound. */
    public ShmServerSocket() throws IOException {
        this((ShmSocketAddress) null, ShmOptions.DEFAULT);
    }

    /** Listens at this path: a file, {@code @name}, or {@code :port}, where 0 is any port that is free. */
    public ShmServerSocket(String path) throws IOException {
        this(path, ShmOptions.DEFAULT);
    }

    /** Listens at this path: a file, {@code @name}, or {@code :port}, where 0 is any port that is free. */
    public ShmServerSocket(String path, ShmOptions options) throws IOException {
        this((ShmSocketAddress) null, options);
        listen(at(new ShmSocketAddress(path)));
    }

    /** Listens at {@link ShmSocketAddress#ofPort}; 0 for any port that is free, which getLocalPort() tells. */
    public ShmServerSocket(int port) throws IOException {
        this(port, ShmOptions.DEFAULT);
    }

    /** Listens at {@link ShmSocketAddress#ofPort}; 0 for any port that is free, which getLocalPort() tells. */
    public ShmServerSocket(int port, ShmOptions options) throws IOException {
        this((ShmSocketAddress) null, options);
        listen(at(new ShmSocketAddress(":" + port)));
    }

    /** Not bound; binds to {@code fixed} where it is not null. */
    ShmServerSocket(ShmSocketAddress fixed, ShmOptions options) throws IOException {
        this.fixed = fixed;
        this.options = Objects.requireNonNull(options);
        kept = KeptOptions.ofListener(options);
    }

    private void listen(Acceptor made) {
        try {
            cleanable = Wire.CLEANER.register(owner, made::close);
            acceptor = made;
        } finally {
            if (acceptor == null) {
                made.close();
            }
        }
    }

    private Acceptor atAnyPort() throws IOException {
        int first = ThreadLocalRandom.current().nextInt(FREE_PORTS);
        for (int i = 1;; ++i) {
            try {
                return new Acceptor(ShmSocketAddress.ofPort(Layout.FIRST_FREE_PORT + (first + i) % FREE_PORTS), options);
            } catch (BindException taken) {
                if (i == FREE_PORTS) {
                    throw taken;
                }
            }
        }
    }

    private Acceptor at(ShmSocketAddress where) throws IOException {
        if (!where.isPort()) {
            return new Acceptor(where, options);
        }
        return where.port() == 0 ? atAnyPort() : new Acceptor(ShmSocketAddress.ofPort(where.port()), options);
    }

    @Override
    public void bind(SocketAddress endpoint) throws IOException {
        bind(endpoint, 0);
    }

    /**
     * Binds to a {@link ShmSocketAddress}, or, if it is null, to any free port. A socket of a {@link ShmServerSocketFactory}
     * binds to the factory's path, whatever the address. The backlog has no effect.
     *
     * @throws IllegalArgumentException for an address of another kind
     */
    @Override
    public synchronized void bind(SocketAddress endpoint, int backlog) throws IOException {
        checkOpen();
        if (acceptor != null) {
            throw new SocketException("Already bound");
        }
        if (fixed != null && !(endpoint instanceof ShmSocketAddress)) {
            listen(at(fixed));
        } else {
            listen(endpoint == null ? atAnyPort() : at(ShmSocketAddress.of(endpoint)));
        }
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

    private Connection acceptConnection() throws IOException {
        checkOpen();
        Acceptor its = acceptor;
        if (its == null) {
            throw new SocketException("Socket is not bound yet");
        }
        try {
            return its.accept(kept.limit());
        } finally {
            // Dropped while a thread waits here, it would be closed.
            Reference.reachabilityFence(this);
        }
    }

    /** Waits for a {@link ShmSocket}. close() ends it with a SocketException, SO_TIMEOUT with a SocketTimeoutException. */
    @Override
    public Socket accept() throws IOException {
        Connection accepted = acceptConnection();
        try {
            return new ShmSocket(accepted, acceptor.address, options);
        } catch (RuntimeException | Error error) {
            accepted.close();
            throw error;
        }
    }

    /** The same for a channel. */
    public ShmChannel acceptChannel() throws IOException {
        Connection accepted = acceptConnection();
        try {
            return new ShmChannel(accepted, acceptor.hasSocketDoorbell());
        } catch (RuntimeException | Error error) {
            accepted.close();
            throw error;
        }
    }

    /**
     * Connections that never came about: of users that may not connect, of peers that broke the protocol or were too
     * late, and those that an error ended, as of memory.
     */
    public long failures() {
        Acceptor its = acceptor;
        return its == null ? 0 : its.failures();
    }

    @Override
    public synchronized void close() throws IOException {
        isClosed = true;
        if (acceptor != null) {
            cleanable.clean();
        }
    }

    @Override
    public boolean isClosed() {
        Acceptor its = acceptor;
        return isClosed || (its != null && !its.isOpen());
    }

    @Override
    public boolean isBound() {
        return acceptor != null;
    }

    @Override
    public SocketAddress getLocalSocketAddress() {
        Acceptor its = acceptor;
        return its == null ? null : its.address;
    }

    /** The loopback address once bound: for what expects one. */
    @Override
    public InetAddress getInetAddress() {
        return acceptor == null ? null : InetAddress.getLoopbackAddress();
    }

    @Override
    public int getLocalPort() {
        return acceptor == null ? -1 : acceptor.address.port();
    }

    /** Null: see {@link #acceptChannel}. */
    @Override
    public ServerSocketChannel getChannel() {
        return null;
    }

    /** Limit of accept() in milliseconds; 0 for none. */
    @Override
    public void setSoTimeout(int milliseconds) throws SocketException {
        kept().setTimeout(milliseconds);
    }

    @Override
    public int getSoTimeout() throws IOException {
        return kept().timeout();
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
    public void setReceiveBufferSize(int size) throws SocketException {
        KeptOptions.checkSize(size, "negative receive size");
        kept().set(StandardSocketOptions.SO_RCVBUF, size);
    }

    @Override
    public int getReceiveBufferSize() throws SocketException {
        return kept().get(StandardSocketOptions.SO_RCVBUF);
    }

    @Override
    public void setPerformancePreferences(int connectionTime, int latency, int bandwidth) {}

    @Override
    public Set<SocketOption<?>> supportedOptions() {
        return kept.names();
    }

    @Override
    public <T> ServerSocket setOption(SocketOption<T> name, T value) throws IOException {
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
        return "ShmServerSocket[" + (acceptor == null ? "unbound" : acceptor.address) + "]";
    }
}
