<?php
/*
 * Handoffs and streams of one process: accept callback, one message with a descriptor, events at their times.
 */
declare(strict_types=1);

const HANDOFF_WITHIN_NS = 5_000_000_000;   // from connecting to the handoff socket, or from a piece to the next
const STALLED_WITHIN_NS = 30_000_000_000;  // for which a client may leave a full socket buffer unread
const DRAIN_WITHIN_S = 10;
const RESERVED_DESCRIPTORS = 32;
const ACCEPTED_AT_ONCE = 64;               // before streams get their time again
const PROMPT_CHARACTERS = 50;

const HEAD = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\nConnection: close\r\n"
    . "X-Accel-Buffering: no\r\n\r\n";
const DONE = "data: [DONE]\n\n";
const REJECTED = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nContent-Length: 21\r\nRetry-After: 1\r\n"
    . "Connection: close\r\n\r\ntoo many connections\n";
const TOO_LARGE = "HTTP/1.1 413 Content Too Large\r\nContent-Type: text/plain\r\nContent-Length: 20\r\n"
    . "Connection: close\r\n\r\nmessage is too long\n";
const BAD_FORMAT = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 20\r\n"
    . "Connection: close\r\n\r\nmessage is not JSON\n";

/** Active connections and peak of streams of each process, in memory that all share. Each writes its own. */
final class Counters
{
    public int $index = 0;
    private FFI\CData $all;

    public function __construct(private int $processes)
    {
        $this->all = Kernel::shared_integers(2 * $processes);
    }

    public function add_active(int $count): void
    {
        $this->all[2 * $this->index] = $this->all[2 * $this->index] + $count;
    }

    public function active(): int
    {
        return $this->sum(0);
    }

    public function raise_peak(int $streams): void
    {
        if ($streams > $this->all[2 * $this->index + 1]) {
            $this->all[2 * $this->index + 1] = $streams;
        }
    }

    /** The sum of the processes' peaks, which can be of different moments. */
    public function peak(): int
    {
        return $this->sum(1);
    }

    private function sum(int $which): int
    {
        $sum = 0;
        for ($index = 0; $index < $this->processes; $index++) {
            $sum += $this->all[2 * $index + $which];
        }
        return $sum;
    }
}

/** The inside of a JSON string. */
function escaped(string $text): string
{
    $flags = JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_LINE_TERMINATORS | JSON_INVALID_UTF8_SUBSTITUTE;
    return substr(json_encode($text, $flags), 1, -1);
}

/** The first characters of a text in UTF-8. */
function first_characters(string $text, int $count): string
{
    return preg_match("/^.{0,$count}/su", $text, $found) ? $found[0] : '';
}

/** [prompt, user id] of a handoff message, both JSON's inside of a string; null where it is not whole, or no JSON object. */
function parse_request(string $message): ?array
{
    $fields = $message === "\0" ? new stdClass() : json_decode($message, false, 512, JSON_BIGINT_AS_STRING);
    if (!$fields instanceof stdClass) {
        return null;
    }
    $prompt = $fields->prompt ?? null;
    $user = $fields->user_id ?? null;
    return [
        is_string($prompt) ? escaped(first_characters($prompt, PROMPT_CHARACTERS)) : '',
        is_int($user) ? (string)$user : (is_string($user) && $user !== '' ? escaped($user) : '0'),
    ];
}

final class Daemon
{
    private EventLoop $loop;
    private bool $is_seqpacket;
    private bool $is_accepting = false, $is_stopping = false;
    private int $handoffs = 0, $clients = 0, $streams = 0;
    private int $room;
    private array $events = [];  // 3 to the last; the same in all streams

    public function __construct(private array $chosen, private int $listener, private Counters $counters, int $limit)
    {
        $this->loop = new EventLoop();
        $this->is_seqpacket = $chosen['socket-type'] === 'seqpacket';
        $signals = Kernel::signals([SIGTERM, SIGINT]);
        $this->loop->watch($signals, EventLoop::READABLE, function () use ($signals) {
            $this->loop->unwatch($signals);
            $this->drain();
        });
        // A full table would make recvmsg() drop the client's descriptor (MSG_CTRUNC), so no connection is accepted without
        // room for two.
        $this->room = $limit - count(scandir('/proc/self/fd')) - RESERVED_DESCRIPTORS;
        if ($this->room < 2) {
            throw new RuntimeException("$limit open files are too few");
        }
        for ($number = 3; $number <= $chosen['messages']; $number++) {
            $this->events[] = $this->event($number, "This is message $number of {$chosen['messages']}.");
        }
    }

    /** One server-sent event; the last of a stream has the mark of the end with it. `$content` is JSON already. */
    private function event(int $number, string $content): string
    {
        return "data: {\"content\":\"$content\"}\n\n" . ($number === $this->chosen['messages'] ? DONE : '');
    }

    /** Serves until SIGTERM or SIGINT, then until the last stream has ended or the deadline. */
    public function run(): void
    {
        $this->update();
        $this->loop->run();
    }

    private function drain(): void
    {
        if ($this->chosen['processes'] === 1) {
            @unlink($this->chosen['socket']);
        }
        // Queued messages were sent before the signal.
        while ($this->has_room() && $this->accept_one()) {
        }
        if ($this->is_accepting) {
            $this->loop->unwatch($this->listener);
        }
        Kernel::close($this->listener);
        $this->is_stopping = true;
        $this->loop->after(DRAIN_WITHIN_S * 1_000_000_000, fn() => $this->loop->stop());
        $this->update();
    }

    private function has_room(): bool
    {
        return $this->clients + 2 * $this->handoffs + 2 <= $this->room;
    }

    /** Accepts while there is room; otherwise connections stay in the queue, or go to another process. Ends the drain. */
    private function update(): void
    {
        if ($this->is_stopping) {
            if ($this->clients + $this->handoffs === 0) {
                $this->loop->stop();
            }
        } elseif ($this->is_accepting !== $this->has_room()) {
            $this->is_accepting = !$this->is_accepting;
            if ($this->is_accepting) {
                $this->loop->watch($this->listener, EventLoop::READABLE, $this->accept(...), is_exclusive: true);
            } else {
                $this->loop->unwatch($this->listener);
            }
        }
    }

    private function accept(): void
    {
        for ($left = ACCEPTED_AT_ONCE; $left > 0 && $this->has_room() && $this->accept_one(); $left--) {
        }
        $this->update();
    }

    private function accept_one(): bool
    {
        $connection = Kernel::accept($this->listener);
        if ($connection < 0) {
            if ($connection === Kernel::FAILED) {
                report('accept has failed: errno ' . Kernel::errno());
            }
            return false;
        }
        $this->handoffs++;
        (new Fiber($this->serve(...)))->start($connection);
        return true;
    }

    /** The fiber of one handoff and its stream. */
    private function serve(int $connection): void
    {
        [$client, $request, $response] = $this->receive($connection);
        Kernel::close($connection);
        $this->handoffs--;
        if ($client < 0) {
            report("handoff without a client: $response");
            $this->update();
            return;
        }
        $this->clients++;
        $this->counters->add_active(1);
        if ($request === null) {
            $this->write($client, $response);
        } elseif ($this->counters->active() > $this->chosen['max-connections']) {
            $this->write($client, REJECTED);
        } else {
            $this->counters->raise_peak(++$this->streams);
            $this->stream($client, ...$request);
            $this->streams--;
        }
        Kernel::close($client);
        $this->counters->add_active(-1);
        $this->clients--;
        $this->update();
    }

    /** Writes all events at their times. A client that has gone fails the next write. */
    private function stream(int $client, string $prompt, string $user): void
    {
        if (!$this->write($client, HEAD . $this->event(1, "Hello from PHP! Prompt: $prompt"))) {
            return;
        }
        $delay = $this->chosen['delay'];
        $due = hrtime(true);
        for ($number = 2; $number <= $this->chosen['messages']; $number++) {
            $due += $delay;
            $this->loop->sleep_until($due);
            if (!$this->write($client, $number === 2 ? $this->event(2, "User ID: $user") : $this->events[$number - 3])) {
                return;
            }
        }
    }

    /** False where the client has gone, or does not read. */
    private function write(int $client, string $data): bool
    {
        while (($sent = Kernel::send($client, $data)) !== strlen($data)) {
            if ($sent === Kernel::FAILED) {
                return false;
            }
            $data = substr($data, max(0, $sent));
            if (!$this->loop->ready($client, EventLoop::WRITABLE, STALLED_WITHIN_NS)) {
                return false;
            }
        }
        return true;
    }

    /**
     * Receives a handoff: [client or -1, request or null, response that refuses it, or the reason without a client].
     *
     * Over SOCK_STREAM a long message comes in pieces, until it is whole or the sender has closed.
     */
    private function receive(int $connection): array
    {
        $client = -1;
        $message = '';
        $is_retry = false;
        while (true) {
            $received = Kernel::receive($connection);
            if ($received === Kernel::AGAIN) {
                if (!$this->loop->ready($connection, EventLoop::READABLE, HANDOFF_WITHIN_NS)) {
                    return [$client, null, $client < 0 ? 'timeout' : BAD_FORMAT];
                }
                continue;
            }
            if ($received === Kernel::FAILED) {
                return [$client, null, $client < 0 ? 'receive' : BAD_FORMAT];
            }
            [$piece, $descriptor] = $received;
            if ($client < 0) {
                $client = $descriptor;
            } elseif ($descriptor >= 0) {
                Kernel::close($descriptor);
            }
            if ($client < 0 && Kernel::$flags & Kernel::MSG_CTRUNC) {
                return [-1, null, 'the descriptor table was full'];
            }
            if ($piece === '') {
                // A SOCK_SEQPACKET peer that sends and closes can be seen as closed before its message is: the next call has
                // the message.
                if ($this->is_seqpacket && $client < 0 && !$is_retry) {
                    $is_retry = true;
                    continue;
                }
                return [$client, null, $client < 0 ? 'no descriptor' : BAD_FORMAT];
            }
            if (Kernel::$flags & Kernel::MSG_TRUNC || strlen($message) + strlen($piece) > MAX_MESSAGE) {
                return [$client, null, $client < 0 ? 'no descriptor' : TOO_LARGE];
            }
            $message .= $piece;
            $request = parse_request($message);
            if ($request !== null) {
                return [$client, $request, 'no descriptor'];
            }
            if ($this->is_seqpacket) {
                return [$client, null, $client < 0 ? 'no descriptor' : BAD_FORMAT];
            }
        }
    }
}
