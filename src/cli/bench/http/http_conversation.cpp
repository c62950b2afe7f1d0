// HTTP/1.1 side of a load.
#include "cli/bench/http/http_conversation.hpp"

#include <eddy/base/assert.hpp>

#include "base/text/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace eddy::cli::bench {
namespace {

constexpr std::uint64_t digest_begin = 0xcbf29ce484222325;

/// FNV-1a: distinguishes bodies, and guards against no attack.
std::uint64_t add_to_digest(std::uint64_t digest, std::string_view text) noexcept {
    for (const char c : text) {
        digest ^= static_cast<unsigned char>(c);
        digest *= 0x100000001b3;
    }
    return digest;
}

void append_up_to(std::string& to, std::string_view piece, std::size_t limit) {
    if (to.size() < limit) to.append(piece.substr(0, limit - to.size()));
}

/// The value of Date in a response's bytes: where it is, and its size; {0, 0} without one.
std::pair<std::size_t, std::size_t> find_date(std::string_view raw) {
    const std::size_t head = raw.find("\r\n\r\n");
    constexpr std::string_view name = "\r\ndate: ";
    for (std::size_t at = raw.find("\r\n"); at < head; at = raw.find("\r\n", at + 2)) {
        if (!is_word(raw.substr(at, name.size()), name)) continue;
        const std::size_t begin = at + name.size();
        return {begin, raw.find("\r\n", begin) - begin};
    }
    return {0, 0};
}

}  // namespace

std::string_view http_conversation::open() {
    parser_ = http1::response_parser(http1::limits{.body = UINT64_MAX});
    at_ = 0;
    is_parsing_ = false;
    return {};
}

void http_conversation::begin_parsing() {
    is_parsing_ = true;
    is_same_ = true;
    size_ = 0;
    digest_ = digest_begin;
    raw_.clear();
    body_.clear();
    raw_size_ = 0;
    parser_.expect_response_to(work_.method);
}

scan_result http_conversation::scan(std::string_view received, std::size_t awaited, tally& into) {
    scan_result made;
    while (!received.empty()) {
        if (!is_parsing_) {
            const std::size_t before = made.replies;
            // The first pass compares every byte of every body.
            if (!is_learning())
                received.remove_prefix(
                    reference_.reply.match(received, awaited, at_, made.replies));
            if (const std::size_t same = made.replies - before; same > 0) {
                into.statuses[static_cast<std::size_t>(reference_.status / 100) % 6] += same;
                has_status_fault(reference_.status, same, into);
            }
            if (received.empty()) break;
            if (made.replies == awaited) {
                into.count(fault::malformed, "the server sent more than it was asked for");
                made.then = scan_result::state::broken;
                return made;
            }
            begin_parsing();
            // The bytes that matched so far belong to this response.
            std::string_view so_far = reference_.reply.read_so_far(std::exchange(at_, 0));
            if (!parse(so_far, made, into)) return made;
        }
        if (!parse(received, made, into)) return made;
        if (made.then != scan_result::state::open) return made;
    }
    return made;
}

bool http_conversation::parse(std::string_view& input, scan_result& made, tally& into) {
    while (is_parsing_) {
        const http1::step step = parser_.parse(input);
        if (is_learning()) {
            append_up_to(raw_, input.substr(0, step.consumed), repeated_reply::compared_limit);
            raw_size_ += step.consumed;
        }
        if (step.what == http1::event::body) take_body(step.body);
        input.remove_prefix(step.consumed);
        switch (step.what) {
            case http1::event::head:
            case http1::event::body: break;
            case http1::event::need_more: return true;
            case http1::event::error:
                into.count(fault::malformed,
                           fmt::format("this is no HTTP response: {}", parser_.error().what));
                made.then = scan_result::state::broken;
                return false;
            case http1::event::end:
                if (parser_.head().status < 200 && !parser_.tunnel()) {
                    begin_parsing();  // the final response follows
                    break;
                }
                is_parsing_ = false;
                ++made.replies;
                if (!parser_.head().keep_alive) made.then = scan_result::state::closes;
                end_response(into);
                return true;
        }
    }
    return true;
}

scan_result http_conversation::finish(tally& into) {
    scan_result made;
    // A response that was compared so far may end with the connection, too.
    if (!is_parsing_ && at_ > 0) {
        begin_parsing();
        std::string_view so_far = reference_.reply.read_so_far(std::exchange(at_, 0));
        if (!parse(so_far, made, into)) return made;
    }
    if (!is_parsing_) return made;
    if (parser_.finish() == http1::event::end) {
        is_parsing_ = false;
        made.replies = 1;
        made.then = scan_result::state::closes;
        end_response(into);
    }
    return made;
}

void http_conversation::take_body(std::string_view piece) {
    if (is_learning()) {
        digest_ = add_to_digest(digest_, piece);
        append_up_to(body_, piece, searched_limit);
    } else if (size_ < reference_.body.size()) {
        const std::size_t known =
            std::min(piece.size(), reference_.body.size() - static_cast<std::size_t>(size_));
        is_same_ =
            is_same_ && std::memcmp(piece.data(), reference_.body.data() + size_, known) == 0;
    }
    size_ += piece.size();
}

bool http_conversation::has_status_fault(int status, std::uint64_t times, tally& into) const {
    if (work_.expected_status ? status == *work_.expected_status : status < 400) return false;
    into.count(fault::status,
               work_.expected_status
                   ? fmt::format("the status is {}, not {}", status, *work_.expected_status)
                   : fmt::format("the status is {}; --expect-status {} allows it", status, status),
               times);
    return true;
}

void http_conversation::end_response(tally& into) {
    const int status = parser_.head().status;
    ++into.statuses[static_cast<std::size_t>(status / 100) % into.statuses.size()];
    if (has_status_fault(status, 1, into)) return;
    const bool is_first = is_learning() && learned_->status == 0;
    if (is_first) {
        learned_->status = status;
        learned_->size = size_;
        learned_->digest = digest_;
        learned_->body = body_.substr(0, repeated_reply::compared_limit);
        if (!work_.expected_text.empty() && !body_.contains(work_.expected_text))
            into.count(fault::content, fmt::format("the body does not contain \"{}\": \"{}\"",
                                                   work_.expected_text, body_.substr(0, 200)));
    } else if (work_.verifies) {
        if (status != reference_.status)
            into.count(fault::content,
                       fmt::format("a reply has the status {}, the first one had {}", status,
                                   reference_.status));
        else if (size_ != reference_.size)
            into.count(
                fault::content,
                fmt::format("a reply has {} bytes, the first one had {}; --no-verify allows it",
                            size_, reference_.size));
        else if (!is_same_ || (is_learning() && digest_ != reference_.digest))
            into.count(fault::content, "a reply differs from the first one; --no-verify allows it");
    }
    if (is_learning()) learn();
}

void http_conversation::learn() {
    const http1::response_head& head = parser_.head();
    // Unfit as a repeated reply: a connection's last response, an interim one, and chunks beyond
    // what is kept.
    if (!head.keep_alive || head.status < 200 || (head.chunked && raw_.size() < raw_size_)) {
        learned_->reply = {};
        return;
    }
    const auto [date, size] = find_date(raw_);
    learned_->reply = repeated_reply(raw_, raw_size_, date, size);
}

}  // namespace eddy::cli::bench
