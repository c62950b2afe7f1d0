// Commands to a cache as lines (`cache get k`), and its replies as lines.
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/wire/resp.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace eddy::runtime::server {

/// Reads a command with its arguments, in quotes as on a command line of Redis, and appends it in
/// RESP to `out`. Returns why it is refused: it must be one about data. Commands about a
/// connection, the cache itself, other servers or scripts are not for clients of a server, and none
/// may wait. Empty: accepted. Throws std::bad_alloc.
std::string encode_cache_command(std::string_view text, byte_buffer& out);

/// Lines of one reply at a time, each with a newline: "ok" for OK, "nil", a string or a number as
/// it is, the elements of an array and then "end", or "error: " and the reason. A string with a
/// line break in it is replaced by an error, since its lines would look like others. One thread.
class reply_lines {
public:
    /// A reply of more than `most` bytes of lines is replaced by an error.
    explicit reply_lines(std::size_t most) noexcept : most_(most) {}

    /// Takes the next event of a reply; the whole reply is appended to `out` at its end, and then
    /// it returns true. Throws std::bad_alloc.
    bool take(const resp::reply_event& event, byte_buffer& out);

private:
    void add(std::string_view text);

    std::size_t most_;
    byte_buffer lines_;
    bool is_list_ = false;
    bool is_too_long_ = false;
    bool has_break_ = false;
};

}  // namespace eddy::runtime::server
