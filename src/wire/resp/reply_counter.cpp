// Counting of replies: a state machine that takes any split, and in front of it two fast loops for
// the common replies, lines and strings.
#include <eddy/wire/resp/reply_counter.hpp>

#include "wire/resp/head.hpp"
#include "wire/resp/line_run.hpp"

#include <algorithm>

namespace eddy::resp {

std::uint64_t reply_counter::count(std::string_view piece) noexcept {
    const std::uint64_t before = replies_;
    const char* at = piece.data();
    const char* const end = at + piece.size();
    while (at < end) {
        switch (state_) {
            case state::start:
                if (*at == '$') {
                    at = skip_strings(at, end);
                } else if (!within_reply_ && detail::is_line_reply(*at)) {
                    const detail::line_run run = detail::skip_lines(at, end);
                    at = run.at;
                    replies_ += run.lines;
                    if (run.within_line) state_ = state::line;
                }
                if (at < end && state_ == state::start) begin_value(*at++);
                break;
            case state::line: {
                const char* const newline = detail::find_newline(at, end);
                at = newline ? newline + 1 : end;
                if (newline) end_value();
                break;
            }
            case state::digits:
                if (const char c = *at++; c == '\n') {
                    end_head();
                } else if (c != '\r' && !take_digit(c)) {
                    state_ = state::malformed;
                }
                break;
            case state::body: {
                const std::uint64_t skipped =
                    std::min(number_, static_cast<std::uint64_t>(end - at));
                at += skipped;
                number_ -= skipped;
                if (number_ == 0) end_value();
                break;
            }
            case state::malformed: at = end; break;
        }
    }
    return replies_ - before;
}

// Skips strings that lie whole in the piece.
const char* reply_counter::skip_strings(const char* at, const char* end) noexcept {
    while (end - at >= std::ptrdiff_t{detail::shortest_string} && *at == '$') {
        std::size_t size = 0;
        const char* const body = detail::read_head<'$'>(at, end, size);
        if (!body || static_cast<std::size_t>(end - body) < size + 2) break;
        at = body + size + 2;
        end_value();
    }
    return at;
}

void reply_counter::begin_value(char type) noexcept {
    type_ = type;
    number_ = 0;
    negative_ = has_digits_ = false;
    switch (type) {
        case '-': ++errors_; [[fallthrough]];
        case '+':
        case ':':
        case '_':
        case '#':
        case ',':
        case '(': state_ = state::line; return;
        case '!': ++errors_; [[fallthrough]];
        case '$':
        case '=':
        case '*':
        case '~':
        case '%':
        case '|': state_ = state::digits; return;
        case '>':
            if (!within_value_) in_push_ = pending_ == 1;
            state_ = state::digits;
            return;
        default: state_ = state::malformed;
    }
}

bool reply_counter::take_digit(char c) noexcept {
    if (c == '-' && !negative_ && !has_digits_) {
        negative_ = true;
        return true;
    }
    if (c < '0' || c > '9') return false;
    has_digits_ = true;
    number_ = number_ * 10 + static_cast<std::uint64_t>(c - '0');
    return number_ <= max_elements;
}

void reply_counter::end_head() noexcept {
    state_ = state::malformed;
    if (!has_digits_) return;
    if (negative_) {  // "$-1" and "*-1" are nulls
        if (number_ == 1 && (type_ == '$' || type_ == '*')) end_value();
        return;
    }
    switch (type_) {
        case '$':
        case '=':
        case '!':
            number_ += 2;
            state_ = state::body;
            return;
        case '%':
        case '|': number_ *= 2; break;
        default: break;
    }
    if (pending_ + number_ > max_elements) return;
    const bool outermost = pending_ == 1;  // not part of an attribute in front of the reply
    pending_ += number_;
    state_ = state::start;
    within_reply_ = true;
    if (type_ == '|') return;  // no value, it stands before one
    if (outermost) within_value_ = true;
    end_value();
}

void reply_counter::end_value() noexcept {
    state_ = state::start;
    if (--pending_ > 0) return;
    pending_ = 1;
    within_reply_ = within_value_ = false;
    if (in_push_) {
        ++pushes_;
        in_push_ = false;
    } else {
        ++replies_;
    }
}

}  // namespace eddy::resp
