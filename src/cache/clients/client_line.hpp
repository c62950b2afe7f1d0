// CLIENT LIST: a session as one line of text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace eddy::cache {

struct client_session;

/// The letters of its flags.
std::string client_flags(const client_session& who);

/// Appends one line, with its end. `executing` is the size in bytes of the command that this client
/// runs, which counts as received input, as in Redis.
void append_client_line(std::string& to, const client_session& who, std::int64_t now_us,
                        std::size_t executing = 0);

}  // namespace eddy::cache
