// RESP, the Redis protocol (versions 2 and 3), as bytes in and values out: no sockets, no clock.
//
//   resp/command.hpp       one command as views; what the parser yields and the cache executes
//   resp/request.hpp       server side: request_parser (one command), request_batch (a pipeline)
//   resp/reply_writer.hpp  server side: appends replies to a byte_buffer
//   resp/reply_parser.hpp  client side: replies as events
//   resp/reply_counter.hpp client side: counts replies, nothing else, for load generators
//
// https://redis.io/docs/latest/develop/reference/protocol-spec/
#pragma once

#include <eddy/wire/resp/command.hpp>
#include <eddy/wire/resp/reply_counter.hpp>
#include <eddy/wire/resp/reply_parser.hpp>
#include <eddy/wire/resp/reply_writer.hpp>
#include <eddy/wire/resp/request.hpp>

/// RESP, the Redis protocol, without I/O. A parser, a writer or a counter belongs to one thread;
/// different ones share nothing.
namespace eddy::resp {}
