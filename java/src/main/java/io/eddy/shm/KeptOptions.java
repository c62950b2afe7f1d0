// Options of sockets and listeners, most of them TCP's, which are kept and have no effect.
package io.eddy.shm;

import java.net.SocketOption;
import java.net.StandardSocketOptions;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** The timeout, and the values of a socket's options. Any thread. */
final class KeptOptions {
    /** SO_LINGER of a socket that does not linger. */
    static final int NO_LINGER = -1;
    private static final int LONGEST_LINGER = 65_535;

    private final Map<SocketOption<?>, Object> values;
    private volatile int timeout;

    private KeptOptions(Map<SocketOption<?>, Object> values) {
        this.values = new ConcurrentHashMap<>(values);
    }

    static KeptOptions ofSocket(ShmOptions options) {
        return new KeptOptions(Map.of(StandardSocketOptions.TCP_NODELAY, true, StandardSocketOptions.SO_KEEPALIVE, false,
                StandardSocketOptions.SO_REUSEADDR, false, StandardSocketOptions.SO_LINGER, NO_LINGER,
                StandardSocketOptions.SO_SNDBUF, options.ringSize, StandardSocketOptions.SO_RCVBUF, options.ringSize,
                StandardSocketOptions.SO_REUSEPORT, false, StandardSocketOptions.IP_TOS, 0));
    }

    static KeptOptions ofListener(ShmOptions options) {
        return new KeptOptions(Map.of(StandardSocketOptions.SO_REUSEADDR, true, StandardSocketOptions.SO_RCVBUF,
                options.ringSize, StandardSocketOptions.SO_REUSEPORT, false));
    }

    /** Of setSoTimeout(): 0 for none. */
    void setTimeout(int milliseconds) {
        if (milliseconds < 0) {
            throw new IllegalArgumentException("timeout can't be negative");
        }
        timeout = milliseconds;
    }

    int timeout() {
        return timeout;
    }

    /** The timeout in nanoseconds, or Connection.NEVER. */
    long limit() {
        return Deadlines.limit(timeout);
    }

    Set<SocketOption<?>> names() {
        return Set.copyOf(values.keySet());
    }

    /** @throws UnsupportedOperationException for an option that it does not have */
    @SuppressWarnings("unchecked")
    <T> T get(SocketOption<T> name) {
        return (T) values.get(checked(name));
    }

    /**
     * @throws UnsupportedOperationException for an option that it does not have
     * @throws IllegalArgumentException for null, and for a size that is not positive
     */
    <T> void set(SocketOption<T> name, T value) {
        Object kept = value;
        checked(name);
        if (kept == null) {
            throw new IllegalArgumentException("Invalid option value");
        }
        if (name == StandardSocketOptions.SO_LINGER) {
            kept = Math.min(Math.max((Integer) kept, NO_LINGER), LONGEST_LINGER);
        } else if (name == StandardSocketOptions.SO_SNDBUF || name == StandardSocketOptions.SO_RCVBUF) {
            checkSize((Integer) kept, "invalid buffer size");
        }
        values.put(name, kept);
    }

    /** {@code refusal}: the exception's message, as the JDK's own sockets have it. */
    static void checkSize(int size, String refusal) {
        if (size <= 0) {
            throw new IllegalArgumentException(refusal);
        }
    }

    private <T> SocketOption<T> checked(SocketOption<T> name) {
        if (!values.containsKey(name)) {
            throw new UnsupportedOperationException("'" + name + "' not supported");
        }
        return name;
    }
}
