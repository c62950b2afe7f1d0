// Hands clients over to a stream runtime: needs python3, as Node passes descriptors to its own children only.
//
//     eddy create stream llm --handoff unix:///tmp/llm.sock --delay 300ms -s
//     node hand_over.mjs 8000 /tmp/llm.sock
//     curl -N 'http://127.0.0.1:8000/?prompt=hello&user=7'

import { spawn } from 'node:child_process';
import http from 'node:http';

// The child inherits the client as descriptor 3, and has the message as its input.
const sender = `
import socket, sys
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sender:
    sender.settimeout(5)
    sender.connect(sys.argv[1])
    socket.send_fds(sender, [sys.stdin.buffer.read()], [3])
`;

function handOver(path, client, request) {
    return new Promise((resolve, reject) => {
        const child = spawn('python3', ['-c', sender, path], { stdio: ['pipe', 'ignore', 'inherit', client] });
        child.on('error', reject);
        child.on('exit', (status) => (status === 0 ? resolve() : reject(new Error(`the sender's status: ${status}`))));
        child.stdin.on('error', () => {}); // the child has ended, and its status says so
        child.stdin.end(JSON.stringify(request));
    });
}

const [port, path] = process.argv.slice(2);
http.createServer(async (request, response) => {
    const query = new URL(request.url, 'http://localhost').searchParams;
    if (!query.has('user')) {
        response.writeHead(401).end();
        return;
    }
    try {
        // The content, to its end. A real server limits it.
        for await (const piece of request);
        await handOver(path, request.socket, {
            user_id: query.get('user'), prompt: query.get('prompt') ?? '',
            http_version: request.httpVersion, request_method: request.method,
            request_id: query.get('request') ?? '', last_event_id: request.headers['last-event-id'] ?? '',
        });
    } catch {
        response.writeHead(503).end();
        return;
    }
    // Closes this process's copy. response.end() would write a response into the stream.
    request.socket.destroy();
}).listen(Number(port), '127.0.0.1');
