// Sockets over shared memory for libraries that only know hosts and ports.
package io.eddy.shm;

import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.util.Arrays;
import java.util.stream.Collectors;
import javax.net.SocketFactory;

/**
 * Makes {@link ShmSocket}s that connect to one path, whatever host and port they are given: for clients of databases, and
 * others that take a SocketFactory. Immutable; any thread.
 */
public class ShmSocketFactory extends SocketFactory {
    private static final String ALLOW = "?allow=";

    private final ShmSocketAddress path;
    private final ShmOptions options;

    /**
     * The constructor that PostgreSQL's driver calls: {@code socketFactory}, and {@code socketFactoryArg} with the path.
     * Behind it may stand {@link ShmOptions#withServerUsers}: {@code @name?allow=33,0}.
     *
     * @throws IllegalArgumentException for a path that cannot be, and for users that are no numbers
     */
    public ShmSocketFactory(String path) {
        this(path.lastIndexOf(ALLOW) < 0 ? path : path.substring(0, path.lastIndexOf(ALLOW)), optionsOf(path));
    }

    /** Sockets with these options. */
    public ShmSocketFactory(String path, ShmOptions options) {
        this.path = new ShmSocketAddress(path);
        this.options = options;
    }

    private static ShmOptions optionsOf(String path) {
        int at = path.lastIndexOf(ALLOW);
        if (at < 0) {
            return ShmOptions.DEFAULT;
        }
        String users = path.substring(at + ALLOW.length());
        try {
            return ShmOptions.DEFAULT.withServerUsers(
                    Arrays.stream(users.split(",", -1)).map(Integer::parseUnsignedInt).collect(Collectors.toSet()));
        } catch (NumberFormatException error) {
            throw new IllegalArgumentException(
                    "allow= is the numbers of users, joined by commas, not \"" + users + "\"", error);
        }
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
