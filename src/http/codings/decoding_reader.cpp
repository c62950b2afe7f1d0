// Decoding of a body, a piece at a time.
#include "http/codings/decoding_reader.hpp"

#include <eddy/io/loop.hpp>

#include <utility>

namespace eddy::http {

decoding_reader::decoding_reader(body_reader& from, decoder by,
                                 const expansion_limits& expansion) noexcept
    : from_(from),
      by_(std::move(by)),
      expansion_(expansion),
      limit_(from.limit()),
      has_ended_(from.ended()) {}

void decoding_reader::set_limit(std::uint64_t bytes) noexcept {
    limit_ = bytes;
    from_.set_limit(bytes);
}

/// Puts the next piece in place of the last one; it may be empty.
result<> decoding_reader::decode(std::string_view& input) {
    out_.clear();
    result<> done = by_.decode(input, out_, piece_bytes, limit_, expansion_);
    if (done && first_ && !by_.is_within(expansion_, first_->by_.taken()))
        done = fail(errc::limit_reached);
    if (!done) failure_ = done.error();
    is_full_ = done && out_.size() == piece_bytes;
    return done;
}

result<> decoding_reader::finish() {
    const result<> complete = by_.finish();
    if (complete)
        has_ended_ = true;
    else
        failure_ = complete.error();
    return complete;
}

task<result<std::string_view>> decoding_reader::read() {
    for (;;) {
        if (failure_) co_return fail(failure_);
        if (has_ended_) co_return fail(errc::end_of_stream);
        if (has_work()) {
            // A little that has arrived may come to much.
            if (is_full_) co_await loop::current().yield();
            const result<> decoded = decode(input_);
            if (decoded && !out_.empty()) co_return out_.text();
            continue;
        }
        const auto piece = co_await from_.read();
        if (piece)
            input_ = *piece;
        else if (piece.error() != errc::end_of_stream)
            co_return piece;
        else if (const result<> complete = finish(); !complete)
            co_return fail(complete.error());
    }
}

task<result<std::string>> decoding_reader::whole(std::size_t limit) {
    if (failure_) co_return fail(failure_);
    std::string text;
    if (has_ended_) co_return text;
    // The body's time is that of its encoded form.
    std::string encoded(input_);
    input_ = {};
    auto rest = co_await from_.whole(limit);
    if (!rest) co_return rest;
    encoded += *rest;
    std::string_view left = encoded;
    while (!left.empty() || is_full_) {
        const result<> decoded = decode(left);
        if (!decoded) co_return fail(decoded.error());
        if (out_.size() > limit - text.size()) {
            failure_ = errc::limit_reached;
            co_return fail(failure_);
        }
        text += out_.text();
        if (is_full_) co_await loop::current().yield();
    }
    out_ = {};
    const result<> complete = finish();
    if (!complete) co_return fail(complete.error());
    co_return text;
}

}  // namespace eddy::http
