// Handoff messages without I/O: where a message ends in a stream of bytes. The message is a JSON
// object, or one NUL byte where a sender has nothing to say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace eddy::handoff {

/// Finds the end of a handoff message that arrives in pieces: of one JSON object, whose text is not
/// checked otherwise, or of a NUL byte. One thread.
class message_end {
public:
    /// Reads the next piece; true from the message's last byte on. What follows it is not read.
    bool feed(std::string_view piece) noexcept;
    /// True once the message is complete.
    bool is_complete() const noexcept { return state_ == state::complete; }

private:
    enum class state : std::uint8_t {
        begin,
        within,
        in_string,
        after_backslash,
        no_object,  // it ends where its sender ends
        complete,
    };
    void feed(char next) noexcept;

    state state_ = state::begin;
    std::size_t depth_ = 0;
};

}  // namespace eddy::handoff
