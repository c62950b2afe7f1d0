// System calls of Linux by java.lang.foreign: JDK 22 and newer.
package io.eddy.shm;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SegmentAllocator;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.VarHandle;
import java.lang.ref.Cleaner;
import java.util.Locale;
import java.util.concurrent.locks.ReentrantLock;

/**
 * The system calls that shared memory needs. Results are 0 or more, or the negated errno (-1 of those that free). Any
 * thread. The class of the
 * same name for JDK 17 to 21 has the same methods by JNI.
 */
final class Native {
    private static final boolean IS_ARM = System.getProperty("os.arch").toLowerCase(Locale.ROOT).equals("aarch64");
    private static final long SYS_FUTEX = IS_ARM ? 98 : 202;
    /** On every architecture. */
    private static final long SYS_CACHESTAT = 451;
    private static final long SYS_MEMBARRIER = IS_ARM ? 283 : 324;

    private static final long FIONREAD = 0x541b;
    private static final int AF_UNIX = 1;
    private static final int SOCK_STREAM = 1;
    private static final int SOCK_CLOEXEC = 0x80000;
    private static final int SOCK_NONBLOCK = 0x800;
    private static final int MSG_DONTWAIT = 0x40;
    private static final int MSG_NOSIGNAL = 0x4000;
    private static final int MSG_CMSG_CLOEXEC = 0x40000000;
    private static final int MSG_PEEK = 2;
    private static final int MSG_CTRUNC = 8;
    private static final int SOL_SOCKET = 1;
    private static final int SO_LINGER = 13;
    private static final int SO_PEERCRED = 17;
    private static final int SCM_RIGHTS = 1;
    private static final int F_ADD_SEALS = 1033;
    private static final int F_GET_SEALS = 1034;
    private static final int SEALS = 0x1 | 0x2 | 0x4 | 0x10; // SEAL, SHRINK, GROW, FUTURE_WRITE
    private static final int TMPFS_MAGIC = 0x01021994;
    private static final int PROT_READ = 1;
    private static final int PROT_WRITE = 2;
    private static final int MAP_SHARED = 1;
    private static final int MAP_PRIVATE = 2;
    private static final int MAP_FIXED = 0x10;
    private static final int MAP_ANONYMOUS = 0x20;
    private static final int SEEK_END = 2;
    private static final int FUTEX_WAIT = 0;
    private static final int FUTEX_WAKE = 1;
    private static final int MEMBARRIER_GLOBAL_EXPEDITED = 2;
    private static final int MEMBARRIER_REGISTER_GLOBAL_EXPEDITED = 4;
    /** As many as one message may have, SCM_MAX_FD: what does not fit is dropped, which blocks for a socket that lingers. */
    private static final int MOST_DESCRIPTORS = 253;
    /** struct epoll_event is packed on x86-64. */
    private static final long EVENT_SIZE = IS_ARM ? 16 : 12;
    private static final long EVENT_DATA = IS_ARM ? 8 : 4;

    private static final Linker LINKER = Linker.nativeLinker();
    private static final SymbolLookup SYMBOLS = LINKER.defaultLookup();
    private static final Linker.Option ERRNO = Linker.Option.captureCallState("errno");
    private static final MemoryLayout STATE = Linker.Option.captureStateLayout();
    private static final VarHandle ERRNO_OF =
            STATE.varHandle(MemoryLayout.PathElement.groupElement("errno"));
    private static final ValueLayout.OfLong UNALIGNED_LONG = ValueLayout.JAVA_LONG_UNALIGNED;

    private static final MethodHandle SOCKET = withErrno("socket", JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT);
    private static final MethodHandle SOCKETPAIR =
            withErrno("socketpair", JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT, ADDRESS);
    private static final MethodHandle CONNECT = withErrno("connect", JAVA_INT, JAVA_INT, ADDRESS, JAVA_INT);
    private static final MethodHandle BIND = withErrno("bind", JAVA_INT, JAVA_INT, ADDRESS, JAVA_INT);
    private static final MethodHandle LISTEN = withErrno("listen", JAVA_INT, JAVA_INT, JAVA_INT);
    private static final MethodHandle ACCEPT4 =
            withErrno("accept4", JAVA_INT, JAVA_INT, ADDRESS, ADDRESS, JAVA_INT);
    private static final MethodHandle SHUTDOWN = withoutErrno("shutdown", JAVA_INT, JAVA_INT, JAVA_INT);
    private static final MethodHandle CLOSE = withoutErrno("close", JAVA_INT, JAVA_INT);
    private static final MethodHandle SEND = withErrno("send", JAVA_LONG, JAVA_INT, ADDRESS, JAVA_LONG, JAVA_INT);
    private static final MethodHandle RECV = withErrno("recv", JAVA_LONG, JAVA_INT, ADDRESS, JAVA_LONG, JAVA_INT);
    private static final MethodHandle SENDMSG = withErrno("sendmsg", JAVA_LONG, JAVA_INT, ADDRESS, JAVA_INT);
    private static final MethodHandle RECVMSG = withErrno("recvmsg", JAVA_LONG, JAVA_INT, ADDRESS, JAVA_INT);
    private static final MethodHandle GETSOCKOPT =
            withErrno("getsockopt", JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT, ADDRESS, ADDRESS);
    private static final MethodHandle SETSOCKOPT =
            withErrno("setsockopt", JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT, ADDRESS, JAVA_INT);
    private static final MethodHandle MEMFD_CREATE = withErrno("memfd_create", JAVA_INT, ADDRESS, JAVA_INT);
    private static final MethodHandle FTRUNCATE = withErrno("ftruncate", JAVA_INT, JAVA_INT, JAVA_LONG);
    private static final MethodHandle LSEEK = withErrno("lseek", JAVA_LONG, JAVA_INT, JAVA_LONG, JAVA_INT);
    private static final MethodHandle IOCTL = LINKER.downcallHandle(symbol("ioctl"),
            FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_LONG, ADDRESS), ERRNO, Linker.Option.firstVariadicArg(2));
    private static final MethodHandle FCNTL = LINKER.downcallHandle(symbol("fcntl"),
            FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT), ERRNO, Linker.Option.firstVariadicArg(2));
    private static final MethodHandle FSTATFS = withErrno("fstatfs", JAVA_INT, JAVA_INT, ADDRESS);
    private static final MethodHandle MMAP =
            withErrno("mmap", JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_INT, JAVA_INT, JAVA_INT, JAVA_LONG);
    private static final MethodHandle MUNMAP = withoutErrno("munmap", JAVA_INT, JAVA_LONG, JAVA_LONG);
    private static final MethodHandle EPOLL_CREATE1 = withErrno("epoll_create1", JAVA_INT, JAVA_INT);
    private static final MethodHandle EPOLL_CTL =
            withErrno("epoll_ctl", JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT, ADDRESS);
    private static final MethodHandle EPOLL_WAIT =
            withErrno("epoll_wait", JAVA_INT, JAVA_INT, ADDRESS, JAVA_INT, JAVA_INT);
    private static final MethodHandle POLL = withErrno("poll", JAVA_INT, ADDRESS, JAVA_LONG, JAVA_INT);
    private static final MethodHandle FUTEX = LINKER.downcallHandle(symbol("syscall"),
            FunctionDescriptor.of(JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, ADDRESS, JAVA_LONG, JAVA_LONG),
            Linker.Option.firstVariadicArg(1));
    private static final MethodHandle MEMBARRIER = LINKER.downcallHandle(symbol("syscall"),
            FunctionDescriptor.of(JAVA_LONG, JAVA_LONG, JAVA_INT, JAVA_INT, JAVA_INT),
            Linker.Option.firstVariadicArg(1));
    private static final MethodHandle CACHESTAT = LINKER.downcallHandle(symbol("syscall"),
            FunctionDescriptor.of(JAVA_LONG, JAVA_LONG, JAVA_INT, ADDRESS, ADDRESS, JAVA_INT), ERRNO,
            Linker.Option.firstVariadicArg(1));
    private static final MethodHandle GETPAGESIZE =
            LINKER.downcallHandle(symbol("getpagesize"), FunctionDescriptor.of(JAVA_INT));
    private static final MethodHandle SIGNAL = LINKER.downcallHandle(symbol("send"),
            FunctionDescriptor.of(JAVA_LONG, JAVA_INT, ADDRESS, JAVA_LONG, JAVA_INT));
    private static final MethodHandle GETCPU = LINKER.downcallHandle(symbol("sched_getcpu"),
            FunctionDescriptor.of(JAVA_INT), Linker.Option.critical(false));
    private static final MethodHandle GETEUID =
            LINKER.downcallHandle(symbol("geteuid"), FunctionDescriptor.of(JAVA_INT));
    private static final MethodHandle SETAFFINITY =
            withErrno("sched_setaffinity", JAVA_INT, JAVA_INT, JAVA_LONG, ADDRESS);

    // Nothing here allocates native memory while the class is initialized: without any left, that fails for good.
    private static MemorySegment bell;
    /** Of the one call of epollControl() under way: struct epoll_event, and errno. */
    private static MemorySegment controlled;
    private static final ReentrantLock CONTROL = new ReentrantLock();

    /** Events that epollWait() finds at most. */
    private static final int MOST_EVENTS = 64;

    /**
     * Native memory of one call. A platform thread has a block for all its calls, which allocate nothing then. What does
     * not fit, and virtual threads, have an arena of the call. None of it counts as direct memory, as that of
     * {@code Arena.ofAuto()} does: the program may have used that up.
     */
    private static final class Frame implements SegmentAllocator, AutoCloseable {
        private static final long BLOCK = 4096;
        private static final Cleaner CLEANER = Cleaner.create();
        private static final ThreadLocal<Frame> OF_THREAD = ThreadLocal.withInitial(Frame::ofThread);

        /** Null for an arena alone. */
        private final MemorySegment block;
        /** Beside the block, for calls that wait: without an object for a slice. Null for an arena alone. */
        final MemorySegment state;
        final MemorySegment time;
        final MemorySegment found;
        private long used;
        private Arena arena;

        private Frame() {
            block = null;
            state = null;
            time = null;
            found = null;
        }

        private Frame(SegmentAllocator from) {
            block = from.allocate(BLOCK, 8);
            state = from.allocate(STATE);
            time = from.allocate(16, 8);
            found = from.allocate(EVENT_SIZE * MOST_EVENTS, 8);
        }

        static Frame ofPlatformThread() {
            return OF_THREAD.get();
        }

        /** Freed after the end of the thread. */
        private static Frame ofThread() {
            Arena lasting = Arena.ofShared();
            try {
                // Of no arena: each call would count itself in one that is shared.
                Frame made = new Frame((size, alignment) ->
                        MemorySegment.ofAddress(lasting.allocate(size, alignment).address()).reinterpret(size));
                CLEANER.register(made, lasting::close);
                return made;
            } catch (RuntimeException | Error error) {
                lasting.close();
                throw error;
            }
        }

        static Frame open() {
            return Threads.isVirtual() ? new Frame() : OF_THREAD.get();
        }

        @Override
        public MemorySegment allocate(long size, long alignment) {
            return allocate(size, alignment, true);
        }

        /** Bytes that the call overwrites. */
        MemorySegment allocateRaw(int size) {
            return allocate(Math.max(size, 1), 1, false);
        }

        private MemorySegment allocate(long size, long alignment, boolean clears) {
            long at = (used + alignment - 1) & -alignment;
            if (block == null || size > BLOCK - at) {
                if (arena == null) {
                    arena = Arena.ofConfined();
                }
                return arena.allocate(size, alignment);
            }
            used = at + size;
            MemorySegment made = block.asSlice(at, size);
            return clears ? made.fill((byte) 0) : made;
        }

        @Override
        public void close() {
            used = 0;
            Arena its = arena;
            if (its != null) {
                arena = null;
                its.close();
            }
        }
    }

    private Native() {}

    private static MemorySegment symbol(String name) {
        return SYMBOLS.find(name).orElseThrow(() -> new UnsatisfiedLinkError(name));
    }

    private static MethodHandle withErrno(String name, MemoryLayout result, MemoryLayout... arguments) {
        return LINKER.downcallHandle(symbol(name), FunctionDescriptor.of(result, arguments), ERRNO);
    }

    private static MethodHandle withoutErrno(String name, MemoryLayout result, MemoryLayout... arguments) {
        return LINKER.downcallHandle(symbol(name), FunctionDescriptor.of(result, arguments));
    }

    /** Of a method handle: it declares Throwable. An Error, as that of memory, is the caller's. */
    private static AssertionError impossible(Throwable error) {
        throw Errors.unchecked(error);
    }

    private static int outcome(int result, MemorySegment state) {
        return result >= 0 ? result : -(int) ERRNO_OF.get(state, 0L);
    }

    private static long outcome(long result, MemorySegment state) {
        return result >= 0 ? result : -(int) ERRNO_OF.get(state, 0L);
    }

    /** Whether this system can be used at all; the reason if not. */
    static String refusal() {
        return System.getProperty("os.name").equals("Linux") ? null : "shared-memory sockets need Linux";
    }

    static int socket() {
        try (Frame frame = Frame.open()) {
            MemorySegment state = frame.allocate(STATE);
            return outcome((int) SOCKET.invokeExact(state, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), state);
        } catch (Throwable error) {
            throw impossible(error);
        }
    }

    static int socketPair(int[] fds) {
        try (Frame frame = Frame.open()) {
            MemorySegment state = frame.allocate(STATE);
            MemorySegment both = frame.allocate(JAVA_INT, 2);
            int made = outcome((int) SOCKETPAIR.invokeExact(state, AF_UNIX,
                    SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, both), state);
            fds[0] = both.getAtIndex(JAVA_INT, 0);
            fds[1] = both.getAtIndex(JAVA_INT, 1);
            return made;
        } catch (Throwable error) {
            throw impossible(error);
        }
    }

    /** {@code name}: sun_path of unix(7), at most 108 bytes. */
    private static MemorySegment address(Frame frame, byte[] name) {
        MemorySegment made = frame.allocate(2 + name.length, 8);
        made.set(JAVA_SHORT, 0, (short) AF_UNIX);
        MemorySegment.copy(name, 0, made, JAVA_BYTE, 2, name.length);
        return made;
    }

    static int connect(int fd, byte[] name) {
        try (Frame frame = Frame.open()) {
            MemorySegment state = frame.allocate(STATE);
            return outcome((int) CONNECT.invokeExact(state, fd, address(frame, name), 2 + name.length), state);
        } catch (Throwable error) {
            throw impossible(error);
        }
    }

    static int bind(int fd, byte[] name) {
        try (Frame frame = Frame.open()) {
            MemorySegment state = frame.allocate(STATE);
            return outcome((int) BIND.invokeExact(state, fd, address(frame, name), 2 + name.length), state);
        } catch (Throwable error) {
            throw impossible(error);
        }
    }

    static int listen(int fd, int backlog) {
        try (Frame frame = Frame.open()) {
            MemorySegment state = frame.allocate(STATE);
            return outcome((int) LISTEN.invokeExact(state, fd, backlog), state);
        } catch (Throwable error) {
            throw impossible(error);
        }
    }

    static int accept(int fd) {
        try (Frame frame = Frame.open()) {
            MemorySegment state = frame.allocate(STATE);
            return outcome((int) ACCEPT4.invokeExact(state, fd, MemorySegment.NULL, MemorySegment.NULL,
                    SOCK_CLOEXEC | SOCK_NONBLOCK), state);
        } catch (Throwable error) {
            throw impossible(error);
        }
    }

    /** Bytes that receive() would find. */
    static int available(int fd) {
        try (Frame frame = Frame.open()) {
            MemorySegment state = frame.allocate(STATE);
            MemorySegment size = frame.allocate(JAVA_INT);
            int failed = outcome((int) IOCTL.invokeExact(state, fd, FIONREAD, size), state);
            return failed < 0 ? failed : size.get(JAVA_INT, 0);
        } catch (Throwable error) {
            throw impossible(error);
        }
    }

    static int shutdown(int fd, int how) {
        try {
            return (int) SHUTDOWN.invokeExact(fd, how);
        } catch (Throwable error) {
            throw impossible(error);
        }
    }

    static int close(int fd) {
        try {
            return (int) CLOSE.invokeExact(fd);
        } catch (Throwable error) {
            throw impossible(error);
        }
    }

    static int send(int fd, byte[] bytes, int from, int size) {
        try (Frame frame = Frame.open()) {
            MemorySegment state = frame.allocate(STATE);
            MemorySegment copy = frame.allocateRaw(size);
            MemorySegment.copy(bytes, from, copy, JAVA_BYTE, 0, size);
            return (int) outcome((long) SEND.invokeExact(state, fd, copy, (long) size, MSG_DONTWAIT | MSG_NOSIGNAL), state);
        } catch (Throwable error) {
            throw impossible(error);
        }
    }

    static int receive(int fd, byte[] into, int from, int size) {
        if (size > EVENT_SIZE * MOST_EVENTS || Threads.isVirtual()) {
            try (Frame frame = Frame.open()) {
                return receive(fd, into, from, size, frame.allocate(STATE), frame.allocateRaw(size));
            }
        }
        Frame its = Frame.ofPlatformThread();
        return receive(fd, into, from, size, its.state, its.found);
    }

    private static int receive(int fd, byte[] into, int from, int size, MemorySegment state, MemorySegment copy) {
        try {
            int got = (int) outcome((long) RECV.invokeExact(state, fd, copy, (long) size, MSG_DONTWAIT), state);
            if (got > 0) {
                MemorySegment.copy(copy, JAVA_BYTE, 0, into, from, got);
            }
            return got;
        } catch (Throwable error) {
            throw impossible(error);
        }
    }

    /** Sends a byte without meaning; one that finds no room is not needed. */
    static void signal(int fd) {
        try {
            MemorySegment byteOfBell = bell;
            if (byteOfBell == null) {
                byteOfBell = Arena.global().allocateFrom("!");
                bell = byteOfBell;
            }
            long ignored = (long) SIGNAL.invokeExact(fd, byteOfBell, 1L, MSG_DONTWAIT | MSG_NOSIGNAL);
        } catch (Throwable error) {
            throw impossible(error);
        }
    }

    /** struct msghdr with one span of bytes and room for descriptors. */
    private static MemorySegment message(Frame frame, MemorySegment bytes, MemorySegment control) {
        MemorySegment span = frame.allocate(16, 8);
        span.set(ADDRESS, 0, bytes);
        span.set(JAVA_LONG, 8, bytes.byteSize());
        MemorySegment made = frame.allocate(56, 8);
        made.set(ADDRESS, 16, span);
        made.set(JAVA_LONG, 24, 1);
        made.set(ADDRESS, 32, control);
        made.set(JAVA_LONG, 40, control.byteSize());
        return made;
    }

    static int sendDescriptor(int fd, byte[] bytes, int descriptor) {
        try (Frame frame = Frame.open()) {
            MemorySegment state = frame.allocate(STATE);
            MemorySegment copy = frame.allocate(bytes.length);
            MemorySegment.copy(bytes, 0, copy, JAVA_BYTE, 0, bytes.length);
            MemorySegment control = frame.allocate(24, 8);
            control.set(JAVA_LONG, 0, 20);
            control.set(JAVA_INT, 8, SOL_SOCKET);
            control.set(JAVA_INT, 12, SCM_RIGHTS);
            control.set(JAVA_INT, 16, descriptor);
            return (int) outcome((long) SENDMSG.invokeExact(state, fd, message(frame, copy, control),
                    MSG_DONTWAIT | MSG_NOSIGNAL), state);
        } catch (Throwable error) {
            throw impossible(error);
        }
    }

    /**
     * Receives bytes, and the first descriptor that came with them: {@code found[0]}, or -1. {@code found[1]} is 1 if
     * more came, which are closed, and 2 if some could not be received. SO_LINGER is taken off sockets that come, so that
     * closing one never blocks. {@code peeks}: the bytes stay, and so do the descriptors, of which these are copies.
     */
    static int receiveMessage(int fd, byte[] into, int from, int[] found, boolean peeks) {
        found[0] = -1;
        found[1] = 0;
        try (Frame frame = Frame.open()) {
            MemorySegment state = frame.allocate(STATE);
            MemorySegment copy = frame.allocate(into.length - from);
            MemorySegment control = frame.allocate(16 + 4 * (MOST_DESCRIPTORS + 1), 8);
            MemorySegment message = message(frame, copy, control);
            int flags = MSG_DONTWAIT | MSG_CMSG_CLOEXEC | (peeks ? MSG_PEEK : 0);
            int got = (int) outcome((long) RECVMSG.invokeExact(state, fd, message, flags), state);
            if (got < 0) {
                return got;
            }
            MemorySegment.copy(copy, JAVA_BYTE, 0, into, from, got);
            if ((message.get(JAVA_INT, 48) & MSG_CTRUNC) != 0) {
                found[1] = 2;
            }
            if (message.get(JAVA_LONG, 40) >= 16 && control.get(JAVA_INT, 8) == SOL_SOCKET
                    && control.get(JAVA_INT, 12) == SCM_RIGHTS) {
                long count = (control.get(JAVA_LONG, 0) - 16) / 4;
                MemorySegment none = frame.allocate(8, 4);
                for (long i = 0; i < count; ++i) {
                    int each = control.get(JAVA_INT, 16 + 4 * i);
                    int ignored = (int) SETSOCKOPT.invokeExact(state, each, SOL_SOCKET, SO_LINGER, none, 8);
                    if (i == 0) {
                        found[0] = each;
                    } else {
                        close(each);
                        found[1] = Math.max(found[1], 1);
                    }
                }
            }
            return got;
        } catch (Throwable error) {
            throw impossible(error);
        }
    }

    /** A whole number, of SOL_SOCKET. */
    static int setOption(int fd, int name, int value) {
        try (Frame frame = Frame.open()) {
            MemorySegment state = frame.allocate(STATE);
            MemorySegment number = frame.allocateFrom(JAVA_INT, value);
            return outcome((int) SETSOCKOPT.invokeExact(state, fd, SOL_SOCKET, name, number, 4), state);
        } catch (Throwable error) {
            throw impossible(error);
        }
    }

    /** The user, and the process, of a Unix socket's peer: two numbers. */
    static int peer(int fd, int[] into) {
        try (Frame frame = Frame.open()) {
            MemorySegment state = frame.allocate(STATE);
            MemorySegment credentials = frame.allocate(12, 4);
            MemorySegment size = frame.allocateFrom(JAVA_INT, 12);
            int done = outcome((int) GETSOCKOPT.invokeExact(state, fd, SOL_SOCKET, SO_PEERCRED, credentials, size), state);
            into[0] = credentials.get(JAVA_INT, 4);
            into[1] = credentials.get(JAVA_INT, 0);
            return done;
        } catch (Throwable error) {
            throw impossible(error);
        }
    }

    static int user() {
        try {
            return (int) GETEUID.invokeExact();
        } catch (Throwable error) {
            throw impossible(error);
        }
    }

    /** A new memory file of this size. */
    static int memoryFile(long size) {
        try (Frame frame = Frame.open()) {
            MemorySegment state = frame.allocate(STATE);
            MemorySegment name = frame.allocateFrom("eddy-shm");
            // CLOEXEC, ALLOW_SEALING, and NOEXEC_SEAL, which kernels before 6.3 do not know.
            int fd = outcome((int) MEMFD_CREATE.invokeExact(state, name, 0xb), state);
            if (fd == -22) {
                fd = outcome((int) MEMFD_CREATE.invokeExact(state, name, 0x3), state);
            }
            if (fd < 0) {
                return fd;
            }
            int sized = outcome((int) FTRUNCATE.invokeExact(state, fd, size), state);
            if (sized < 0) {
                close(fd);
                return sized;
            }
            return fd;
        } catch (Throwable error) {
            throw impossible(error);
        }
    }

    /** Adds all the seals of layout.h. */
    static int seal(int fd) {
        return addSeals(fd, SEALS);
    }

    static int addSeals(int fd, int seals) {
        try (Frame frame = Frame.open()) {
            MemorySegment state = frame.allocate(STATE);
            return outcome((int) FCNTL.invokeExact(state, fd, F_ADD_SEALS, seals), state);
        } catch (Throwable error) {
            throw impossible(error);
        }
    }

    /** 1 for a sealed memory file of this size; 0 for another file. */
    static int isMemoryFile(int fd, long size) {
        try (Frame frame = Frame.open()) {
            MemorySegment state = frame.allocate(STATE);
            int found = (int) FCNTL.invokeExact(state, fd, F_GET_SEALS, 0);
            if (found < 0 || (found & SEALS) != SEALS) {
                return 0;
            }
            MemorySegment system = frame.allocate(256, 8);
            int read = outcome((int) FSTATFS.invokeExact(state, fd, system), state);
            if (read < 0) {
                return read;
            }
            // Those of huge pages may have none when they are touched.
            if (system.get(JAVA_LONG, 0) != TMPFS_MAGIC) {
                return 0;
            }
            return (long) LSEEK.invokeExact(state, fd, 0L, SEEK_END) == size ? 1 : 0;
        } catch (Throwable error) {
            throw impossible(error);
        }
    }

    /** Pages of a memory file's span that exist, swapped ones among them: cachestat(2), from Linux 6.5 on. */
    static long existingPages(int fd, long offset, long size) {
        try (Frame frame = Frame.open()) {
            MemorySegment state = frame.allocate(STATE);
            MemorySegment range = frame.allocate(16, 8);
            range.set(JAVA_LONG, 0, offset);
            range.set(JAVA_LONG, 8, size);
            // cached, dirty, written back, evicted, recently evicted
            MemorySegment counts = frame.allocate(40, 8);
            long done = outcome((long) CACHESTAT.invokeExact(state, SYS_CACHESTAT, fd, range, counts, 0), state);
            return done < 0 ? done : counts.get(JAVA_LONG, 0) + counts.get(JAVA_LONG, 24);
        } catch (Throwable error) {
            throw impossible(error);
        }
    }

    static int pageSize() {
        try {
            return (int) GETPAGESIZE.invokeExact();
        } catch (Throwable error) {
            throw impossible(error);
        }
    }

    /** Maps the header, and the ring behind it twice. */
    static long map(int fd, int ringSize, boolean isWritable) {
        long once = Layout.HEADER_SIZE + (long) ringSize;
        long all = once + ringSize;
        int protection = isWritable ? PROT_READ | PROT_WRITE : PROT_READ;
        try (Frame frame = Frame.open()) {
            MemorySegment state = frame.allocate(STATE);
            // The room for both first, so that the second one has its place.
            long base = outcome((long) MMAP.invokeExact(state, 0L, all, 0, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L), state);
            if (base < 0) {
                return base;
            }
            long first = outcome((long) MMAP.invokeExact(state, base, once, protection, MAP_SHARED | MAP_FIXED, fd, 0L), state);
            long second = first < 0 ? first : outcome((long) MMAP.invokeExact(state, base + once, (long) ringSize, protection,
                    MAP_SHARED | MAP_FIXED, fd, (long) Layout.HEADER_SIZE), state);
            if (second < 0) {
                unmap(base, all);
                return second;
            }
            return base;
        } catch (Throwable error) {
            throw impossible(error);
        }
    }

    static int unmap(long address, long size) {
        try {
            return (int) MUNMAP.invokeExact(address, size);
        } catch (Throwable error) {
            throw impossible(error);
        }
    }

    /** Sleeps while the word has this value, at most so long; {@code Long.MAX_VALUE} for no limit. */
    static void futexWait(long address, int seen, long nanos) {
        try {
            MemorySegment time = MemorySegment.NULL;
            if (nanos != Long.MAX_VALUE) {
                time = Frame.ofPlatformThread().time;
                time.set(JAVA_LONG, 0, nanos / 1_000_000_000);
                time.set(JAVA_LONG, 8, nanos % 1_000_000_000);
            }
            // Not FUTEX_PRIVATE_FLAG: the waker is another process.
            long ignored = (long) FUTEX.invokeExact(SYS_FUTEX, address, (long) FUTEX_WAIT, (long) seen, time, 0L, 0L);
        } catch (Throwable error) {
            throw impossible(error);
        }
    }

    static void futexWake(long address) {
        try {
            long ignored = (long) FUTEX.invokeExact(SYS_FUTEX, address, (long) FUTEX_WAKE, (long) Integer.MAX_VALUE,
                    MemorySegment.NULL, 0L, 0L);
        } catch (Throwable error) {
            throw impossible(error);
        }
    }

    /** Whether this process can be part of asymmetric fences, from now on. */
    static boolean registerFence() {
        try {
            return (long) MEMBARRIER.invokeExact(SYS_MEMBARRIER, MEMBARRIER_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
        } catch (Throwable error) {
            throw impossible(error);
        }
    }

    /** The fence in all processes that are registered. */
    static void fenceEverywhere() {
        try {
            long ignored = (long) MEMBARRIER.invokeExact(SYS_MEMBARRIER, MEMBARRIER_GLOBAL_EXPEDITED, 0, 0);
        } catch (Throwable error) {
            throw impossible(error);
        }
    }

    /** The processor that this thread runs on; negative if that is unknown. */
    static int processor() {
        try {
            return (int) GETCPU.invokeExact();
        } catch (Throwable error) {
            throw impossible(error);
        }
    }

    /** Has this thread run on one processor, below 64. */
    static int pin(int processor) {
        try (Frame frame = Frame.open()) {
            MemorySegment state = frame.allocate(STATE);
            MemorySegment set = frame.allocateFrom(JAVA_LONG, 1L << processor);
            return outcome((int) SETAFFINITY.invokeExact(state, 0, 8L, set), state);
        } catch (Throwable error) {
            throw impossible(error);
        }
    }

    static int epollCreate() {
        try (Frame frame = Frame.open()) {
            MemorySegment state = frame.allocate(STATE);
            return outcome((int) EPOLL_CREATE1.invokeExact(state, SOCK_CLOEXEC), state);
        } catch (Throwable error) {
            throw impossible(error);
        }
    }

    /** {@code operation}: 1 adds, 2 removes, 3 changes. Allocates nothing after the first call. */
    static int epollControl(int epoll, int operation, int fd, int events, long data) {
        CONTROL.lock();
        try {
            if (controlled == null) {
                controlled = Arena.global().allocate(16 + STATE.byteSize(), 8);
            }
            MemorySegment event = controlled.asSlice(0, 16);
            MemorySegment state = controlled.asSlice(16);
            event.set(JAVA_INT, 0, events);
            event.set(UNALIGNED_LONG, EVENT_DATA, data);
            return outcome((int) EPOLL_CTL.invokeExact(state, epoll, operation, fd, event), state);
        } catch (Throwable error) {
            throw impossible(error);
        } finally {
            CONTROL.unlock();
        }
    }

    /** {@code milliseconds} as epoll_wait(2). Platform threads. */
    static int epollWait(int epoll, long[] data, int[] events, int milliseconds) {
        try {
            Frame its = Frame.ofPlatformThread();
            MemorySegment state = its.state;
            MemorySegment found = its.found;
            int most = Math.min(data.length, MOST_EVENTS);
            int count = outcome((int) EPOLL_WAIT.invokeExact(state, epoll, found, most, milliseconds), state);
            for (int i = 0; i < count; ++i) {
                events[i] = found.get(ValueLayout.JAVA_INT_UNALIGNED, EVENT_SIZE * i);
                data[i] = found.get(UNALIGNED_LONG, EVENT_SIZE * i + EVENT_DATA);
            }
            return count;
        } catch (Throwable error) {
            throw impossible(error);
        }
    }

    static int poll(int fd, int events, int milliseconds) {
        try (Frame frame = Frame.open()) {
            MemorySegment state = frame.allocate(STATE);
            MemorySegment watched = frame.allocate(8, 4);
            watched.set(JAVA_INT, 0, fd);
            watched.set(JAVA_SHORT, 4, (short) events);
            return outcome((int) POLL.invokeExact(state, watched, 1L, milliseconds), state);
        } catch (Throwable error) {
            throw impossible(error);
        }
    }
}
