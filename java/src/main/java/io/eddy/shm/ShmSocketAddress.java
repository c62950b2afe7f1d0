// Address of a listener: the path of its Unix socket.
package io.eddy.shm;

import java.net.SocketAddress;
import java.net.SocketException;
import java.nio.charset.StandardCharsets;
import java.util.Objects;

/** Path of a Unix socket, a file or {@code @name} in the abstract namespace; unix(7). Immutable. */
public final class ShmSocketAddress extends SocketAddress {
    private static final long serialVersionUID = 1;
    /** Bytes of sun_path, of which the last one is zero for a file. */
    private static final int MOST_BYTES = 108;

    private final String path;

    /** @throws IllegalArgumentException for a path that is empty, longer than 107 bytes, or has a zero in it */
    public ShmSocketAddress(String path) {
        this.path = Objects.requireNonNull(path);
        if (path.isEmpty() || path.equals("@") || path.indexOf('\0') >= 0 || bytes().length > MOST_BYTES) {
            throw new IllegalArgumentException("\"" + path + "\" cannot be the path of a Unix socket");
        }
    }

    /** The path as it was given. */
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

    /** The address itself, or a SocketException for one of another kind. */
    static ShmSocketAddress of(SocketAddress address) throws SocketException {
        if (address instanceof ShmSocketAddress ours) {
            return ours;
        }
        throw new SocketException("Unsupported address type: " + address);
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
