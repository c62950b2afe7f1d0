// Counter of the events in an event stream that comes in pieces.
#pragma once

#include <cstdint>
#include <string_view>

namespace eddy::runtime::stream {

/// An event is complete at a blank line behind a line that is no comment (WHATWG HTML, 9.2.6).
class event_counter {
public:
    /// Events that are complete with these bytes.
    std::uint32_t count(std::string_view piece) noexcept {
        std::uint32_t complete = 0;
        for (const char each : piece) {
            const bool is_rest = each == '\n' && is_behind_cr_;  // of a line's end
            is_behind_cr_ = each == '\r';
            if (is_rest) continue;
            if (each != '\r' && each != '\n') {
                has_field_ |= is_at_begin_ && each != ':';
                is_at_begin_ = false;
                continue;
            }
            if (is_at_begin_ && has_field_) {
                ++complete;
                has_field_ = false;
            }
            is_at_begin_ = true;
        }
        return complete;
    }

private:
    bool is_at_begin_ = true;  // of a line
    bool is_behind_cr_ = false;
    bool has_field_ = false;  // of the event
};

}  // namespace eddy::runtime::stream
