// RESP command as views: the request parser's output, a command table's input.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace eddy::resp {

/// One command: argv[0] is its name as it was sent (any case, any bytes). The views, and the array
/// that they stand in, live as long as the parser's documentation says: until its next call, and no
/// longer than the input that was parsed. The thread of that parser.
struct command {
    /// The name and the arguments, `argc` of them.
    const std::string_view* argv = nullptr;
    /// Their number, the name included.
    std::size_t argc = 0;
    /// Its name is byte for byte that of the command before it in its request_batch, so that a
    /// lookup of it can be reused. May be false all the same.
    bool repeats_name = false;

    /// The same as `argc`.
    std::size_t size() const noexcept { return argc; }
    /// One of them; `index` is below size().
    std::string_view operator[](std::size_t index) const noexcept { return argv[index]; }
    /// The name. A parsed command always has one, which may be empty ("$0").
    std::string_view name() const noexcept { return argv[0]; }
    /// All of it, the name included.
    std::span<const std::string_view> args() const noexcept { return {argv, argc}; }
};

}  // namespace eddy::resp
