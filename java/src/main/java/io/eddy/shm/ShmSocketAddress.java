// Address of a listener: the path of its Unix socket.
package io.eddy.shm;

import java.io.IOException;
import java.net.SocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Path of a Unix socket, a file or {@code @name} in the abstract namespace; unix(7). That of a client is unnamed, with an
 * empty path. Immutable.
 */
public final class ShmSocketAddress extends SocketAddress {
    private static final long serialVersionUID = 1;
    /** Bytes of sun_path, of which the last one is zero for a file. */
    private static final int MOST_BYTES = 108;
    private static final int HIGHEST_PORT = 65_535;
    /** A port's name, with the user's number; or the port alone. */
    private static final Pattern PORT = Pattern.compile("(?:@" + Layout.PORT_NAME + "[0-9]+-|:)([0-9]{1,5})");

    /** Address of a client, and of both ends of a pair. */
    static final ShmSocketAddress UNNAMED = new ShmSocketAddress();

    private final String path;

    private ShmSocketAddress() {
        path = "";
    }

    /**
     * A path, or {@code :4242} for a port: a listener takes the name of its own user, a client tries those of the users
     * whose server it accepts.
     *
     * @throws IllegalArgumentException for a path that is empty, longer than 107 bytes, or has a zero in it, and for a colon
     *     without a port behind it
     */
    public ShmSocketAddress(String path) {
        this.path = Objects.requireNonNull(path);
        if (path.isEmpty() || (isPort() && portIn(path) < 0) || path.equals("@") || path.indexOf('\0') >= 0 || bytes().length > MOST_BYTES) {
            throw new IllegalArgumentException("\"" + path + "\" cannot be the path of a Unix socket");
        }
    }

    /**
     * The address for programs that only know ports: the name {@code @eddy-shm-USER-PORT}, where USER is the number of this
     * process's effective user, so that each user has all ports.
     *
     * @throws IllegalArgumentException for a port below 1 or above 65535
     * @throws IOException where this system has no shared-memory sockets
     */
    public static ShmSocketAddress ofPort(int port) throws IOException {
        if (port < 1 || port > HIGHEST_PORT) {
            throw new IllegalArgumentException("Port value out of range: " + port);
        }
        Connector.checkSystem();
        return nameOf(port, Native.user());
    }

    private static ShmSocketAddress nameOf(int port, int user) {
        return new ShmSocketAddress("@" + Layout.PORT_NAME + Integer.toUnsignedString(user) + "-" + port);
    }

    /** Negative where there is none. */
    private static int portIn(String path) {
        Matcher found = PORT.matcher(path);
        int port = found.matches() ? Integer.parseInt(found.group(1)) : -1;
        return port <= HIGHEST_PORT ? port : -1;
    }

    /** The port of a path with one, and of an address by {@link #ofPort}; 0 for all others. */
    public int port() {
        return Math.max(portIn(path), 0);
    }

    /** Whether it is a port alone, so that the users are still to be chosen. */
    boolean isPort() {
        return path.startsWith(":");
    }

    /** What a client tries in turn: of a port the name for each user whose server it accepts, by default its own and root. */
    List<ShmSocketAddress> names(Set<Integer> users) throws IOException {
        if (!isPort()) {
            return List.of(this);
        }
        ShmSocketAddress own = ofPort(port());
        if (users.isEmpty()) {
            ShmSocketAddress roots = nameOf(port(), 0);
            return own.equals(roots) ? List.of(own) : List.of(own, roots);
        }
        return users.stream().sorted().map(user -> nameOf(port(), user)).toList();
    }

    /** The path as it was given; empty for an unnamed address. */
    public String path() {
        return path;
    }

    boolean isAbstract() {
        return path.charAt(0) == '@';
    }

    /** sun_path, with the zero that begins an abstract name, or ends a file's. */
    byte[] name() {
        return bytes();
    }

    private byte[] bytes() {
        boolean isAbstract = path.charAt(0) == '@';
        byte[] made = (isAbstract ? "\0" + path.substring(1) : path + "\0").getBytes(StandardCharsets.UTF_8);
        return made;
    }

    /** @throws IllegalArgumentException for one of another kind, as those of the JDK's sockets, and for an unnamed one */
    static ShmSocketAddress of(SocketAddress address) {
        if (address instanceof ShmSocketAddress ours && !ours.path.isEmpty()) {
            return ours;
        }
        throw new IllegalArgumentException("Unsupported address type: " + address);
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof ShmSocketAddress && ((ShmSocketAddress) other).path.equals(path);
    }

    @Override
    public int hashCode() {
        return path.hashCode();
    }

    @Override
    public String toString() {
        return path;
    }
}
