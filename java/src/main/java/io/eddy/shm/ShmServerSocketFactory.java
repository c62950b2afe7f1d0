// Listeners over shared memory for servers that only know ports.
package io.eddy.shm;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import javax.net.ServerSocketFactory;

/** Makes a {@link ShmServerSocket} that listens at one path, whatever port it is given. Immutable; any thread. */
public class ShmServerSocketFactory extends ServerSocketFactory {
    private final ShmSocketAddress path;
    private final ShmOptions options;

    /** A listener at this path, a file or {@code @name}. */
    public ShmServerSocketFactory(String path) {
        this(path, ShmOptions.DEFAULT);
    }

    /** The same with options. */
    public ShmServerSocketFactory(String path, ShmOptions options) {
        this.path = new ShmSocketAddress(path);
        this.options = options;
    }

    /** Not bound: bind() with any address goes to the path. */
    @Override
    public ServerSocket createServerSocket() throws IOException {
        return new ShmServerSocket(path, options);
    }

    private ServerSocket bound() throws IOException {
        ServerSocket made = createServerSocket();
        made.bind(path);
        return made;
    }

    @Override
    public ServerSocket createServerSocket(int port) throws IOException {
        return bound();
    }

    @Override
    public ServerSocket createServerSocket(int port, int backlog) throws IOException {
        return bound();
    }

    @Override
    public ServerSocket createServerSocket(int port, int backlog, InetAddress address) throws IOException {
        return bound();
    }
}
