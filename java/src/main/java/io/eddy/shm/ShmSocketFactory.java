// Sockets over shared memory for libraries that only know hosts and ports.
package io.eddy.shm;

import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import javax.net.SocketFactory;

/**
 * Makes {@link ShmSocket}s that connect to one path, whatever host and port they are given: for clients of databases, and
 * others that take a SocketFactory. Immutable; any thread.
 */
public class ShmSocketFactory extends SocketFactory {
    private final ShmSocketAddress path;
    private final ShmOptions options;

    /** The constructor that PostgreSQL's driver calls: {@code socketFactory}, and {@code socketFactoryArg} with the path. */
    public ShmSocketFactory(String path) {
        this(path, ShmOptions.DEFAULT);
    }

    /** Sockets with these options. */
    public ShmSocketFactory(String path, ShmOptions options) {
        this.path = new ShmSocketAddress(path);
        this.options = options;
    }

    /** Unconnected: connect() with any address goes to the path. */
    @Override
    public Socket createSocket() {
        return new ShmSocket(path, options);
    }

    private Socket connected() throws IOException {
        Socket made = createSocket();
        made.connect(path);
        return made;
    }

    @Override
    public Socket createSocket(String host, int port) throws IOException {
        return connected();
    }

    @Override
    public Socket createSocket(String host, int port, InetAddress localHost, int localPort) throws IOException {
        return connected();
    }

    @Override
    public Socket createSocket(InetAddress host, int port) throws IOException {
        return connected();
    }

    @Override
    public Socket createSocket(InetAddress address, int port, InetAddress localAddress, int localPort)
            throws IOException {
        return connected();
    }
}
