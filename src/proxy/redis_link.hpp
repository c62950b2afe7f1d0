// Redis link: a connection on which commands are asked, one at a time, of a server that speaks
// RESP, such as a Sentinel. Its replies are untrusted.
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/result.hpp>
#include <eddy/io/stream.hpp>
#include <eddy/io/task.hpp>
#include <eddy/wire/resp/reply_parser.hpp>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace eddy::proxy {

/// Reply, with its values in their order and without their nesting.
struct flat_reply {
    std::string error = {};  ///< text of an error reply; empty: it is none
    bool is_null = false;
    std::vector<std::string> values = {};  ///< strings; numbers as digits; null as an empty one
};

/// It must outlive its operations, of which one is under way at most. One loop's thread.
class redis_link {
public:
    /// Bytes, and values, of a reply at most; errc::limit_reached or errc::malformed beyond them.
    static constexpr std::size_t most_bytes = std::size_t{64} * 1024;
    static constexpr std::size_t most_values = 4096;

    explicit redis_link(stream connected) noexcept;

    /// Sends a command and awaits its reply. Yields a result<flat_reply>; an error reply is one,
    /// too. Errors are those of the stream, errc::malformed for bytes that are no reply, and
    /// errc::limit_reached; the link is of no more use then.
    task<result<flat_reply>> ask(std::vector<std::string> words);
    /// Awaits the next reply, which may be a message of a channel. The same errors.
    task<result<flat_reply>> next();

private:
    stream socket_;
    byte_buffer received_;
    resp::reply_parser parser_;
};

}  // namespace eddy::proxy
