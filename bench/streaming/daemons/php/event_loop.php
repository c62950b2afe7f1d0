<?php
/*
 * Event loop of fibers over epoll, and the system calls it needs, by ext-ffi.
 */
declare(strict_types=1);

const MAX_MESSAGE = 212_992;  // bytes of a handoff; above it the client gets a 413
const MAX_DESCRIPTORS = 8;    // that one message may bring; all but the first are closed

/** System calls. Calls that fail for a reason other than EAGAIN or EINTR throw a RuntimeException, where no result is named. */
final class Kernel
{
    public const AGAIN = -1;
    public const FAILED = -2;
    private const EINTR = 4, EAGAIN = 11;
    private const AF_UNIX = 1, SOCK_STREAM = 1, SOCK_SEQPACKET = 5, NONBLOCK = 0o4000, CLOEXEC = 0o2000000;
    private const MSG_DONTWAIT = 0x40, MSG_NOSIGNAL = 0x4000, MSG_CMSG_CLOEXEC = 0x40000000;
    public const MSG_CTRUNC = 0x8, MSG_TRUNC = 0x20;
    private const SOL_SOCKET = 1, SCM_RIGHTS = 1;
    private const PROT_READ_WRITE = 3, MAP_SHARED_ANONYMOUS = 0x21;
    private const PR_SET_PDEATHSIG = 1;
    private const CONTROL_SIZE = 16 + 4 * MAX_DESCRIPTORS;

    private static FFI $c;
    private static FFI\CData $header, $control, $buffer, $part;
    public static int $flags = 0;  // of the last receive()

    public static function load(): void
    {
        // epoll_data is 64 bits wide, and packed on x86-64 alone. Half of it holds a descriptor.
        $padding = php_uname('m') === 'x86_64' ? '' : 'uint32_t padding;';
        self::$c = FFI::cdef("
            typedef struct { uint32_t events; $padding int32_t descriptor; uint32_t unused; } epoll_event;
            typedef struct { void *base; size_t length; } iovec;
            typedef struct { void *name; uint32_t name_length; iovec *parts; size_t part_count;
                             void *control; size_t control_length; int flags; } msghdr;
            typedef struct { size_t length; int level; int type; int descriptors[" . MAX_DESCRIPTORS . "]; } rights;
            typedef struct { uint16_t family; char path[108]; } sockaddr_un;
            int *__errno_location(void);
            char *strerror(int);
            int socket(int, int, int);
            int bind(int, const sockaddr_un *, uint32_t);
            int listen(int, int);
            int accept4(int, void *, void *, int);
            ssize_t recvmsg(int, msghdr *, int);
            ssize_t send(int, const char *, size_t, int);
            int close(int);
            int epoll_create1(int);
            int epoll_ctl(int, int, int, epoll_event *);
            int epoll_wait(int, epoll_event *, int, int);
            int signalfd(int, const uint64_t *, int);
            ssize_t read(int, char *, size_t);
            int prctl(int, unsigned long);
            void *mmap(void *, size_t, int, int, int, long);
        ", 'libc.so.6');
        self::$buffer = self::$c->new('char[' . MAX_MESSAGE . ']');
        self::$control = self::$c->new('rights[1]');
        self::$part = self::$c->new('iovec[1]');
        self::$part[0]->base = self::$c->cast('void *', FFI::addr(self::$buffer));
        self::$part[0]->length = MAX_MESSAGE;
        self::$header = self::$c->new('msghdr[1]');
        self::$header[0]->parts = FFI::addr(self::$part[0]);
        self::$header[0]->part_count = 1;
        self::$header[0]->control = self::$c->cast('void *', FFI::addr(self::$control));
    }

    public static function c(): FFI
    {
        return self::$c;
    }

    public static function errno(): int
    {
        return self::$c->__errno_location()[0];
    }

    public static function check(int $result, string $what): int
    {
        if ($result < 0) {
            throw new RuntimeException($what . ': ' . FFI::string(self::$c->strerror(self::errno())));
        }
        return $result;
    }

    /** A listening Unix socket in non-blocking mode; an earlier file of the name is removed. */
    public static function listen(string $path, int $mode, bool $is_seqpacket, int $backlog): int
    {
        if ($path === '' || strlen($path) > 107) {
            throw new RuntimeException("$path: no name for a Unix socket");
        }
        $kind = $is_seqpacket ? self::SOCK_SEQPACKET : self::SOCK_STREAM;
        $socket = self::check(self::$c->socket(self::AF_UNIX, $kind | self::NONBLOCK | self::CLOEXEC, 0), 'socket');
        $address = self::$c->new('sockaddr_un');
        $address->family = self::AF_UNIX;
        FFI::memcpy($address->path, $path, strlen($path));
        @unlink($path);
        self::check(self::$c->bind($socket, FFI::addr($address), FFI::sizeof($address)), "bind $path");
        chmod($path, $mode);
        self::check(self::$c->listen($socket, $backlog), 'listen');
        return $socket;
    }

    /** A connection, or AGAIN, or FAILED. */
    public static function accept(int $listener): int
    {
        $found = self::$c->accept4($listener, null, null, self::NONBLOCK | self::CLOEXEC);
        return $found >= 0 ? $found : self::reason();
    }

    /** The number of bytes sent, or AGAIN, or FAILED. */
    public static function send(int $socket, string $data): int
    {
        $sent = self::$c->send($socket, $data, strlen($data), self::MSG_DONTWAIT | self::MSG_NOSIGNAL);
        return $sent >= 0 ? $sent : self::reason();
    }

    /** The content of a message: [bytes, first descriptor or -1], or AGAIN, or FAILED. Other descriptors are closed. */
    public static function receive(int $socket): array|int
    {
        $header = self::$header[0];
        $header->control_length = self::CONTROL_SIZE;
        $size = self::$c->recvmsg($socket, self::$header, self::MSG_DONTWAIT | self::MSG_CMSG_CLOEXEC);
        if ($size < 0) {
            return self::reason();
        }
        self::$flags = $header->flags;
        $first = -1;
        // Rights are the only control message that a socket without further options has, and come in one.
        $rights = self::$control[0];
        if ($header->control_length > 16 && $rights->level === self::SOL_SOCKET && $rights->type === self::SCM_RIGHTS) {
            $first = $rights->descriptors[0];
            for ($index = 1; $index < intdiv($rights->length - 16, 4); $index++) {
                self::close($rights->descriptors[$index]);
            }
        }
        return [FFI::string(self::$buffer, $size), $first];
    }

    public static function close(int $descriptor): void
    {
        self::$c->close($descriptor);
    }

    private static function reason(): int
    {
        $errno = self::errno();
        return $errno === self::EAGAIN || $errno === self::EINTR ? self::AGAIN : self::FAILED;
    }

    /** A descriptor that can be read once one of these signals, which are blocked, has come. */
    public static function signals(array $numbers): int
    {
        pcntl_sigprocmask(SIG_BLOCK, $numbers);
        $set = self::$c->new('uint64_t[16]');
        foreach ($numbers as $number) {
            $set[0] = $set[0] | 1 << $number - 1;
        }
        return self::check(self::$c->signalfd(-1, $set, self::NONBLOCK | self::CLOEXEC), 'signalfd');
    }

    public static function end_with_parent(int $signal): void
    {
        self::$c->prctl(self::PR_SET_PDEATHSIG, $signal);
    }

    /** Zeroed integers that forked processes share, for the life of the process. */
    public static function shared_integers(int $count): FFI\CData
    {
        $memory = self::$c->mmap(null, 8 * $count, self::PROT_READ_WRITE, self::MAP_SHARED_ANONYMOUS, -1, 0);
        return self::$c->cast("int64_t *", $memory);
    }
}

Kernel::load();

/**
 * Runs fibers: each waits for a descriptor or for a time. One for a process.
 *
 * Timers are kept by the millisecond at which they expire, so a heap orders milliseconds, and not each timer.
 */
final class EventLoop
{
    public const READABLE = 1, WRITABLE = 4;
    private const CTL_ADD = 1, CTL_DEL = 2, CLOEXEC = 0o2000000, EXCLUSIVE = 1 << 28;
    private const EVENTS_AT_ONCE = 256;
    private const TICK_NS = 1_000_000;

    private int $epoll;
    private FFI\CData $events, $event;
    private array $callbacks = [];  // by descriptor: what is called as it gets ready
    private array $timers = [];     // by tick, at its end: fibers and callbacks
    private SplMinHeap $ticks;      // the ticks that have timers
    private bool $is_stopped = false;

    public function __construct()
    {
        $c = Kernel::c();
        $this->ticks = new SplMinHeap();
        $this->epoll = Kernel::check($c->epoll_create1(self::CLOEXEC), 'epoll_create1');
        $this->events = $c->new('epoll_event[' . self::EVENTS_AT_ONCE . ']');
        $this->event = $c->new('epoll_event[1]');
    }

    /** Calls `$callback` whenever the descriptor is ready. With `$is_exclusive`, other processes that wait may stay asleep. */
    public function watch(int $descriptor, int $what, Closure $callback, bool $is_exclusive = false): void
    {
        $this->event[0]->events = $what | ($is_exclusive ? self::EXCLUSIVE : 0);
        $this->event[0]->descriptor = $descriptor;
        Kernel::check(Kernel::c()->epoll_ctl($this->epoll, self::CTL_ADD, $descriptor, $this->event), 'epoll_ctl');
        $this->callbacks[$descriptor] = $callback;
    }

    public function unwatch(int $descriptor): void
    {
        Kernel::c()->epoll_ctl($this->epoll, self::CTL_DEL, $descriptor, null);
        unset($this->callbacks[$descriptor]);
    }

    /** Suspends the fiber until the descriptor is ready (true) or the time has passed (false). */
    public function ready(int $descriptor, int $what, int $within_ns): bool
    {
        $fiber = Fiber::getCurrent();
        $is_over = false;
        $this->watch($descriptor, $what, static function () use ($fiber, &$is_over) {
            if (!$is_over) {
                $is_over = true;
                $fiber->resume(true);
            }
        });
        $this->after($within_ns, static function () use ($fiber, &$is_over) {
            if (!$is_over) {
                $is_over = true;
                $fiber->resume(false);
            }
        });
        try {
            return Fiber::suspend();
        } finally {
            $this->unwatch($descriptor);
        }
    }

    /** Suspends the fiber until a time of hrtime(). */
    public function sleep_until(int $due): void
    {
        $this->add($due, Fiber::getCurrent());
        Fiber::suspend();
    }

    /** Calls `$callback` once after a time. */
    public function after(int $delay_ns, Closure $callback): void
    {
        $this->add(hrtime(true) + $delay_ns, $callback);
    }

    private function add(int $due, Fiber|Closure $waiting): void
    {
        $tick = intdiv($due + self::TICK_NS - 1, self::TICK_NS);
        if (!isset($this->timers[$tick])) {
            $this->ticks->insert($tick);
        }
        $this->timers[$tick][] = $waiting;
    }

    public function stop(): void
    {
        $this->is_stopped = true;
    }

    public function run(): void
    {
        $c = Kernel::c();
        while (!$this->is_stopped) {
            $next = $this->expire();
            if ($this->is_stopped) {
                break;
            }
            $wait = $next === null ? -1 : max(0, intdiv($next - hrtime(true) + 999_999, 1_000_000));
            $count = $c->epoll_wait($this->epoll, $this->events, self::EVENTS_AT_ONCE, $wait);
            for ($index = 0; $index < $count; $index++) {
                // A callback before this one can have ended the watch.
                $callback = $this->callbacks[$this->events[$index]->descriptor] ?? null;
                if ($callback !== null) {
                    $callback();
                }
            }
        }
    }

    /** Resumes what is due; the time of the next timer, or null. */
    private function expire(): ?int
    {
        $now = intdiv(hrtime(true), self::TICK_NS);
        // Taken out before any is resumed, so that a delay of 0 leaves other events their time.
        $expired = [];
        while (!$this->ticks->isEmpty() && $this->ticks->top() <= $now) {
            $tick = $this->ticks->extract();
            $expired[] = $this->timers[$tick];
            unset($this->timers[$tick]);
        }
        foreach ($expired as $timers) {
            foreach ($timers as $waiting) {
                $waiting instanceof Fiber ? $waiting->resume() : $waiting();
            }
        }
        return $this->ticks->isEmpty() ? null : $this->ticks->top() * self::TICK_NS;
    }
}
