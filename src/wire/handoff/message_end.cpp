// End of a handoff message.
#include "wire/handoff/message_end.hpp"

namespace eddy::handoff {

bool message_end::feed(std::string_view piece) noexcept {
    for (const char next : piece) {
        if (is_complete()) break;
        feed(next);
    }
    return is_complete();
}

void message_end::feed(char next) noexcept {
    switch (state_) {
        case state::begin:
            if (next == '\0')
                state_ = state::complete;
            else if (next == '{')
                state_ = state::within, depth_ = 1;
            else if (next != ' ' && next != '\t' && next != '\r' && next != '\n')
                state_ = state::no_object;
            break;
        case state::within:
            if (next == '"')
                state_ = state::in_string;
            else if (next == '{' || next == '[')
                ++depth_;
            else if ((next == '}' || next == ']') && --depth_ == 0)
                state_ = state::complete;
            break;
        case state::in_string:
            if (next == '\\')
                state_ = state::after_backslash;
            else if (next == '"')
                state_ = state::within;
            break;
        case state::after_backslash: state_ = state::in_string; break;
        case state::no_object:
        case state::complete: break;
    }
}

}  // namespace eddy::handoff
