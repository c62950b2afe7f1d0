<?php
// Hands clients over to a stream runtime: needs PHP's extension sockets.
//
//     eddy create stream llm --handoff unix:///tmp/llm.sock --delay 300ms -s
//     php hand_over.php 8000 /tmp/llm.sock
//     curl -N 'http://127.0.0.1:8000/?prompt=hello'

// The client is a stream. An object of the class Socket needs socket_export_stream() first: of a list that begins
// with one, PHP 8.2 passes descriptor 0 in its place.
function hand_over(string $path, $client, array $request): void
{
    $sender = socket_create(AF_UNIX, SOCK_SEQPACKET, 0);
    if (!$sender || !socket_connect($sender, $path)) {
        throw new RuntimeException(socket_strerror(socket_last_error()));
    }
    $message = [
        'iov' => [json_encode($request)],
        'control' => [['level' => SOL_SOCKET, 'type' => SCM_RIGHTS, 'data' => [$client]]],
    ];
    if (socket_sendmsg($sender, $message, 0) === false) {
        throw new RuntimeException(socket_strerror(socket_last_error($sender)));
    }
    socket_close($sender);
}

$listening = stream_socket_server("tcp://127.0.0.1:{$argv[1]}");
if (!$listening) {
    exit(1);
}
while ($client = stream_socket_accept($listening, -1)) {
    // The head, without fgets(): bytes that PHP has in its buffer are lost with a warning when the client is handed
    // over. A real server limits time and size, reads the content as well, and checks the user.
    $head = '';
    while (!str_contains($head, "\r\n\r\n")) {
        $piece = (string) stream_socket_recvfrom($client, 8192);
        if ($piece === '') {
            continue 2;
        }
        $head .= $piece;
    }
    [$line] = explode("\r\n", $head, 2);
    parse_str((string) parse_url(explode(' ', $line)[1] ?? '/', PHP_URL_QUERY), $query);
    hand_over($argv[2], $client, [
        'prompt' => $query['prompt'] ?? '',
        // For the response's framing.
        'http_version' => str_contains($line, ' HTTP/1.0') ? '1.0' : '1.1',
    ]);
    unset($client);
}
