// Exceptions for the errors of system calls.
package io.eddy.shm;

import java.io.IOException;
import java.net.BindException;
import java.net.ConnectException;
import java.net.SocketException;

/** Numbers of errno(3) that are looked at, and their exceptions. */
final class Errors {
    static final int EPERM = 1;
    static final int ENOENT = 2;
    static final int EINTR = 4;
    static final int EAGAIN = 11;
    static final int ENOMEM = 12;
    static final int EACCES = 13;
    static final int EPIPE = 32;
    static final int ENOPROTOOPT = 92;
    static final int EADDRINUSE = 98;
    static final int ECONNABORTED = 103;
    static final int ECONNRESET = 104;
    static final int ETOOMANYREFS = 109;
    static final int ECONNREFUSED = 111;

    private Errors() {}

    /** {@code outcome} is a negated errno. */
    static IOException of(String what, int outcome) {
        return new SocketException(what + ": " + text(-outcome));
    }

    /** What was caught as a Throwable, unchecked: an Error or a RuntimeException is thrown on as it is. */
    static AssertionError unchecked(Throwable error) {
        if (error instanceof Error) {
            throw (Error) error;
        }
        if (error instanceof RuntimeException) {
            throw (RuntimeException) error;
        }
        return new AssertionError(error);
    }

    static IOException connecting(ShmSocketAddress to, int outcome) {
        return new ConnectException(to + ": " + text(-outcome));
    }

    static IOException ofServersUser(ShmSocketAddress to) {
        return new ConnectException(to + ": " + text(EACCES) + "; a server of another user is allowed by its number: "
                + "ShmOptions.withServerUsers, or ?allow=33 in a ShmSocketFactory's path");
    }

    static IOException binding(ShmSocketAddress to, int outcome) {
        return new BindException(to + ": " + text(-outcome));
    }

    private static String text(int errno) {
        switch (errno) {
            case EPERM: return "Operation not permitted";
            case ENOENT: return "No such file or directory";
            case ENOMEM: return "Cannot allocate memory";
            case EACCES: return "Permission denied";
            case 20: return "Not a directory";
            case 22: return "Invalid argument";
            case 23: return "Too many open files in system";
            case 24: return "Too many open files";
            case EPIPE: return "Broken pipe";
            case 30: return "Read-only file system";
            case 91: return "Protocol wrong type for socket";
            case EADDRINUSE: return "Address already in use";
            case ECONNRESET: return "Connection reset";
            case ECONNREFUSED: return "Connection refused";
            default: return "error " + errno;
        }
    }
}
