#!/usr/bin/env php
<?php
/*
 * Streaming daemon in PHP: a fiber for each client that a web server hands over.
 *
 * The event loop is in event_loop.php: fibers over epoll by ext-ffi. It stands in for AMPHP 3 (revolt), which Debian does not
 * have: its AMPHP is version 2, of generators. PHP's own stream_select() ends at descriptor 1,024, and of the extensions with an
 * event loop (ev, event, uv) Debian's PHP has none that fits fibers. What is measured is therefore PHP with fibers and a small
 * loop, and not AMPHP.
 *
 * A handoff is one connection to a Unix socket that brings one message: JSON, or one NUL byte, with the client's
 * descriptor (SCM_RIGHTS). The answer is a stream of server-sent events on that descriptor.
 *
 * One process, or with -p several that accept from one listener, since each process has a descriptor table, and thus a limit
 * of open files, of its own. PHP 8.1 or later with ffi, pcntl and posix; Linux.
 */
declare(strict_types=1);

foreach (['FFI', 'pcntl', 'posix'] as $extension) {
    if (!extension_loaded($extension)) {
        fwrite(STDERR, "streaming_daemon: the extension $extension is missing\n");
        exit(1);
    }
}
ini_set('memory_limit', '-1');
ini_set('fiber.stack_size', '64K');
// The daemon makes no cycles of objects, and the collector would walk through all fibers again and again.
gc_disable();

require __DIR__ . '/event_loop.php';
require __DIR__ . '/daemon.php';

const MAX_PROCESSES = 64;
const DRAIN_MARGIN_S = 2;  // after which a worker that has not ended is killed

function report(string $text): void
{
    fwrite(STDERR, "streaming_daemon: $text\n");
}

function usage(): never
{
    fwrite(STDERR, <<<'END'
        Usage: streaming_daemon.php [OPTION...]
          -s, --socket PATH           Unix socket path (/var/run/streaming-daemon-amp.sock)
          -m, --mode MODE             socket permissions, octal (0660)
          -d, --delay MS              delay between events (50)
          -n, --messages NUM          events of a stream (18)
          -c, --max-connections NUM   concurrent connections, of all processes (100000)
          -t, --socket-type TYPE      stream or seqpacket (stream)
          -b, --backlog NUM           listen backlog (4096)
          -p, --processes NUM         processes, each with its own limit of open files (1)

        END);
    exit(2);
}

function parse_options(array $words): array
{
    $found = ['socket' => '/var/run/streaming-daemon-amp.sock', 'mode' => '0660', 'delay' => '50', 'messages' => '18',
              'max-connections' => '100000', 'socket-type' => 'stream', 'backlog' => '4096', 'processes' => '1'];
    $short = ['-s' => 'socket', '-m' => 'mode', '-d' => 'delay', '-n' => 'messages', '-c' => 'max-connections',
              '-t' => 'socket-type', '-b' => 'backlog', '-p' => 'processes'];
    while ($words) {
        $word = array_shift($words);
        [$word, $value] = array_pad(explode('=', $word, 2), 2, null);
        $name = $short[$word] ?? (str_starts_with($word, '--') ? substr($word, 2) : '');
        $value ??= array_shift($words);
        if (!isset($found[$name]) || $value === null) {
            usage();
        }
        $found[$name] = $value;
    }
    foreach (['messages', 'max-connections', 'backlog', 'processes'] as $name) {
        if (!ctype_digit($found[$name]) || (int)$found[$name] < 1) {
            usage();
        }
        $found[$name] = (int)$found[$name];
    }
    if (!is_numeric($found['delay']) || $found['delay'] < 0 || !preg_match('/^0?o?[0-7]{1,3}$/', $found['mode'])
        || !in_array($found['socket-type'], ['stream', 'seqpacket']) || $found['processes'] > MAX_PROCESSES) {
        usage();
    }
    $found['mode'] = octdec($found['mode']);
    $found['delay'] = (int)round($found['delay'] * 1e6);
    return $found;
}

/** Forks the workers, passes a signal on to them and waits for their ends. True if all went well. */
function supervise(array $chosen, int $listener, Counters $counters, int $limit): bool
{
    $awaited = [SIGTERM, SIGINT, SIGCHLD];
    pcntl_sigprocmask(SIG_BLOCK, $awaited);
    $parent = getmypid();
    $running = [];
    for ($index = 0; $index < $chosen['processes']; $index++) {
        $pid = pcntl_fork();
        if ($pid === 0) {
            Kernel::end_with_parent(SIGTERM);
            $status = 1;
            try {
                if (posix_getppid() === $parent) {
                    $counters->index = $index;
                    (new Daemon($chosen, $listener, $counters, $limit))->run();
                    $status = 0;
                }
            } catch (Throwable $why) {
                report("worker $index: " . $why->getMessage());
            }
            exit($status);
        }
        $running[$pid] = true;
    }
    Kernel::close($listener);
    $went_well = true;
    $end = null;
    while ($running) {
        $pid = pcntl_waitpid(-1, $status, WNOHANG);
        if ($pid > 0) {
            unset($running[$pid]);
            if ($status !== 0 || $end === null) {
                report("a worker has ended with wait status $status");
                $went_well = false;
            }
            if ($end !== null) {
                continue;
            }
        }
        $is_stopping = $pid > 0;
        if (!$is_stopping) {
            $signal = $end === null ? pcntl_sigwaitinfo($awaited, $info) : pcntl_sigtimedwait([SIGCHLD], $info, 0, 100_000_000);
            $is_stopping = $signal === SIGTERM || $signal === SIGINT;
        }
        if ($end === null && $is_stopping) {
            $end = hrtime(true) + (DRAIN_WITHIN_S + DRAIN_MARGIN_S) * 1_000_000_000;
            @unlink($chosen['socket']);
        } elseif ($end === null || hrtime(true) < $end) {
            continue;
        }
        foreach ($running as $pid => $_) {
            posix_kill($pid, hrtime(true) < $end ? SIGTERM : SIGKILL);
        }
    }
    return $went_well;
}

function main(array $words): int
{
    $chosen = parse_options($words);
    $limit = posix_getrlimit()['hard openfiles'];
    $limit = $limit === 'unlimited' ? PHP_INT_MAX : $limit;
    $counters = new Counters($chosen['processes']);
    $went_well = true;
    try {
        if (posix_setrlimit(POSIX_RLIMIT_NOFILE, $limit, $limit) === false) {
            $limit = posix_getrlimit()['soft openfiles'];
        }
        $listener = Kernel::listen($chosen['socket'], $chosen['mode'], $chosen['socket-type'] === 'seqpacket', $chosen['backlog']);
        if ($chosen['processes'] > 1) {
            $went_well = supervise($chosen, $listener, $counters, $limit);
        } else {
            (new Daemon($chosen, $listener, $counters, $limit))->run();
        }
    } catch (RuntimeException $why) {
        report($why->getMessage());
        $went_well = false;
    }
    @unlink($chosen['socket']);
    fwrite(STDERR, 'Peak concurrent streams: ' . $counters->peak() . "\n");
    return $went_well ? 0 : 1;
}

exit(main(array_slice($argv, 1)));
