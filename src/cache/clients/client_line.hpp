// CLIENT LIST: a session as one line of text.
#pragma once

#include <cstdint>
#include <string>

namespace eddy::cache {

struct session;

/// Appends one line, with its end.
void append_client_line(std::string& to, const session& who, std::int64_t now_us);

}  // namespace eddy::cache
