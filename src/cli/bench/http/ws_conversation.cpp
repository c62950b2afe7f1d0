// WebSocket side of a load on an echo server.
#include "cli/bench/http/ws_conversation.hpp"

#include <eddy/base/assert.hpp>

#include <fmt/format.h>

#include <array>
#include <utility>

namespace eddy::cli::bench {
namespace {

using websocket::opcode;

websocket::mask_key draw_mask(random_generator& numbers) {
    const std::uint64_t bits = numbers();
    return {static_cast<std::uint8_t>(bits), static_cast<std::uint8_t>(bits >> 8),
            static_cast<std::uint8_t>(bits >> 16), static_cast<std::uint8_t>(bits >> 24)};
}

/// Within the limits of any message that is sent.
constexpr websocket::limits echo_limits = {.frame = std::uint64_t{64} << 20,
                                           .message = std::uint64_t{64} << 20};

}  // namespace

ws_work::ws_work(std::size_t size, opcode of, std::size_t pipeline, std::uint64_t seed) : kind(of) {
    random_generator numbers(seed);
    message.resize(size);
    for (char& c : message)
        c = static_cast<char>(kind == opcode::text ? 'a' + numbers.below(26) : numbers.below(256));
    byte_buffer out;
    for (std::size_t i = 0; i < pipeline; ++i) {
        websocket::write_frame(out, {.kind = kind, .mask = draw_mask(numbers)}, message);
        if (i == 0) frame_size = out.size();
    }
    frames = out.text();
    out.clear();
    websocket::write_frame(out, {.kind = kind}, message);
    const std::string reply(out.text());
    whole_echo = repeated_reply(reply, reply.size());
    echo = repeated_reply(reply.substr(0, repeated_reply::compared_limit), reply.size());
}

ws_conversation::ws_conversation(const ws_work& work, std::uint64_t seed, bool is_first)
    : work_(work), is_first_(is_first), numbers_(seed) {}

std::string_view ws_conversation::open() {
    std::array<std::uint8_t, 16> random{};
    for (std::uint8_t& each : random) each = static_cast<std::uint8_t>(numbers_());
    offer_.key = websocket::make_key(random);
    http1::header_list fields = work_.headers;
    const bool is_added = websocket::add_request_fields(fields, offer_).has_value();
    opening_.clear();
    http1::head_writer writer(opening_);
    writer.request("GET", work_.target).fields(fields);
    const bool is_written = writer.end(http1::body_framing::none()).has_value();
    EDDY_ASSERT(is_added && is_written);  // the headers have been checked
    response_.emplace();
    parser_ = websocket::parser(websocket::role::client, echo_limits);
    message_.clear();
    answers_.clear();
    at_ = 0;
    is_open_ = is_parsing_ = false;
    return opening_.text();
}

std::string ws_conversation::take_answers() {
    std::string taken(answers_.text());
    answers_.clear();
    return taken;
}

bool ws_conversation::scan_handshake(std::string_view& input, tally& into) {
    while (!is_open_) {
        const http1::step step = response_->parse(input);
        input.remove_prefix(step.consumed);
        if (step.what == http1::event::need_more) return true;
        if (step.what == http1::event::error) {
            into.count(fault::malformed, fmt::format("the answer to the upgrade is no HTTP: {}",
                                                     response_->error().what));
            return false;
        }
        // The body of a refusal is of no interest, and an interim response is no answer.
        if (step.what != http1::event::head ||
            (response_->head().status < 200 && response_->head().status != 101))
            continue;
        const auto agreed = websocket::check_response(response_->head(), offer_);
        if (!agreed) {
            into.count(fault::connect, fmt::format("the server opens no WebSocket: status {}, {}",
                                                   response_->head().status, agreed.error().what));
            return false;
        }
        static_cast<void>(response_->parse(input.substr(0, 0)));  // the end
        is_open_ = true;
        response_.reset();
    }
    return true;
}

scan_result ws_conversation::scan(std::string_view received, std::size_t awaited, tally& into) {
    scan_result made;
    const repeated_reply& expected = is_first_ ? work_.whole_echo : work_.echo;
    if (!is_open_ && !scan_handshake(received, into)) {
        made.then = scan_result::state::broken;
        return made;
    }
    while (!received.empty()) {
        if (!is_parsing_) {
            received.remove_prefix(expected.match(received, awaited, at_, made.replies));
            if (received.empty()) break;
            is_parsing_ = true;
            std::string_view so_far = expected.read_so_far(std::exchange(at_, 0));
            if (!parse(so_far, made, awaited, into)) return made;
        }
        if (!parse(received, made, awaited, into)) return made;
    }
    return made;
}

bool ws_conversation::parse(std::string_view& input, scan_result& made, std::size_t awaited,
                            tally& into) {
    const auto fail = [&](fault kind, std::string_view what) {
        into.count(kind, what);
        made.then = scan_result::state::broken;
        return false;
    };
    while (is_parsing_) {
        const websocket::step step = parser_.collect(input, message_);
        using enum websocket::event;
        switch (step.what) {
            case message_begin:
            case data: break;  // collect() yields none
            case pong: break;
            case need_more: break;
            case message_end:
                if (made.replies == awaited)
                    return fail(fault::malformed, "the server sent more messages than it was sent");
                ++made.replies;
                if (work_.verifies &&
                    (message_.text() != work_.message || parser_.message().kind != work_.kind))
                    into.count(fault::content, "an echo differs from the message");
                message_.clear();
                break;
            case ping: {
                const auto written = websocket::write_control(answers_, opcode::pong, step.data,
                                                              draw_mask(numbers_));
                EDDY_ASSERT(written.has_value());
                break;
            }
            case close:
                return fail(fault::closed, fmt::format("the server closed a WebSocket: {} {}",
                                                       static_cast<int>(step.code), step.data));
            case error:
                return fail(fault::malformed,
                            fmt::format("the server broke the protocol: {}", parser_.error().what));
        }
        input.remove_prefix(step.consumed);
        if (step.what == need_more) return true;
        // Between messages the comparison resumes.
        if (parser_.is_idle()) is_parsing_ = false;
    }
    return true;
}

}  // namespace eddy::cli::bench
