// The WebSocket protocol (RFC 6455) without I/O, for servers and clients: bytes in, events out.
//
//   websocket/frame.hpp      roles, opcodes, close codes, the mask
//   websocket/parser.hpp     frames as events: messages, pings, pongs, close
//   websocket/writer.hpp     heads of frames, whole frames, close frames
//   websocket/handshake.hpp  the HTTP upgrade on both ends, with subprotocols and the terms of
//                            permessage-deflate (RFC 7692)
//
// Compression itself is no part of it: the parser yields a compressed message as it was sent,
// marked as such.
#pragma once

#include <eddy/wire/websocket/frame.hpp>
#include <eddy/wire/websocket/handshake.hpp>
#include <eddy/wire/websocket/parser.hpp>
#include <eddy/wire/websocket/writer.hpp>

/// The WebSocket protocol without I/O. A parser belongs to one thread; functions are for any
/// thread.
namespace eddy::websocket {}
