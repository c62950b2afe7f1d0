// Pipes: two streams, of which one yields the bytes that the other takes. See pipe(7). One loop's
// thread.
//
// loop::adopt() makes a stream of any pipe end, FIFO or terminal in the same way.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/io/stream.hpp>

namespace eddy {

/// Both ends of a pipe. Reading from `writer` and writing to `reader` fail with EBADF.
struct pipe_ends {
    /// Yields what was written.
    stream reader;
    /// Takes bytes, as many as the kernel's buffer has room for at a time (on the simulator
    /// sim_options::socket_buffer).
    stream writer;
};

/// A new pipe, close-on-exec, on this thread's loop. Close `writer` to end what `reader` reads;
/// shutdown_write() is errc::unsupported. Writing when all readers have gone is EPIPE, and no
/// SIGPIPE reaches the process. Errors are pipe2(2)'s, and ENOMEM. Give one end to another loop or
/// process by detach().
///
/// On the simulator a pipe lies in memory, has no descriptor to detach, and meets the faults of
/// sim_options: reads that get less, delays, no receive buffers. A `reset` is the loss of the other
/// end: EPIPE for the writer, an early end for the reader.
[[nodiscard]] result<pipe_ends> make_pipe();

}  // namespace eddy
