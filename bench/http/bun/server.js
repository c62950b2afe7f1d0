// Rival of run_http.py: Bun's server, which stands for uWebSockets. It echoes a query as JSON, serves files, and echoes
// WebSocket messages.
//
//     bun server.js --port N [--root DIR] [--cert FILE --key FILE]
const option = (name, otherwise) => {
  const at = process.argv.indexOf(name);
  return at < 0 ? otherwise : process.argv[at + 1];
};
const root = option("--root", ".");
const cert = option("--cert");

Bun.serve({
  hostname: "127.0.0.1",
  port: Number(option("--port", "8080")),
  tls: cert ? { cert: Bun.file(cert), key: Bun.file(option("--key")) } : undefined,
  routes: {
    "/small": Bun.file(`${root}/small`),
    "/large": Bun.file(`${root}/large`),
  },
  fetch(request, server) {
    const url = new URL(request.url);
    if (url.pathname === "/echo") return Response.json({ hello: url.searchParams.get("hello") });
    if (url.pathname === "/ws" && server.upgrade(request)) return;
    return new Response("", { status: 404 });
  },
  websocket: {
    perMessageDeflate: false,
    maxPayloadLength: 1 << 20,
    message(peer, message) {
      peer.send(message);
    },
  },
});
