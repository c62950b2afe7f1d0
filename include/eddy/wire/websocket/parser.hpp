// Parser of WebSocket frames into messages, for both roles (RFC 6455, 5 to 8).
//
// `input` is a buffer with the bytes received after the handshake:
//
//     websocket::step step = parser.collect(input.text(), message);
//     input.consume(step.consumed);
//     switch (step.what) {
//         case websocket::event::message_end: ...  // use message.text(), then message.clear()
//         case websocket::event::ping: ...         // write_control(out, opcode::pong, step.data)
//         case websocket::event::close: ...        // answer write_close(out, step.code), end
//         case websocket::event::error: ...        // write_close(out, parser.error().code), end
//         case websocket::event::need_more: ...    // receive, or parser.finish() at the peer's end
//         ...
//     }
//
// The events do not depend on how the bytes were cut, except that data comes in other pieces.
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/bytes.hpp>
#include <eddy/base/result.hpp>
#include <eddy/base/utf8.hpp>
#include <eddy/wire/websocket/frame.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace eddy::websocket {

/// Sizes that a parser accepts. Beyond one of them it ends with 1009, when the frame's head has
/// come and before any of its payload. They count bytes as sent: inflated data needs a limit of its
/// own.
struct limits {
    std::uint64_t frame = 16ULL << 20;    ///< bytes of a data frame's payload
    std::uint64_t message = 16ULL << 20;  ///< bytes of a message, all its frames together
};

/// Events of a parser; see step.
enum class event : unsigned char {
    need_more,      ///< all of the input is consumed
    message_begin,  ///< the head of a message's first frame; parser::message() describes it
    data,           ///< a piece of the message
    message_end,    ///< the message is complete
    ping,           ///< with the payload to answer
    pong,           ///< with its payload
    close,          ///< with code and reason; nothing follows
    error,          ///< described by parser::error()
};

/// Result of one call of parse() or collect().
struct step {
    /// The event.
    event what = event::need_more;
    /// Reason of a close, or close_code::none.
    close_code code = close_code::none;
    /// Bytes of the input that were consumed. Without meaning at error.
    std::size_t consumed = 0;
    /// At data, ping, pong and close (its reason, valid UTF-8): the unmasked bytes. A view into the
    /// input or the parser, until the next call.
    std::string_view data;
};

/// The message at hand.
struct message_info {
    opcode kind = opcode::text;  ///< text or binary
    bool is_compressed = false;  ///< RSV1: its data is to be inflated, and text to be checked then
    std::uint64_t size = 0;      ///< bytes of data in the frames begun so far
};

/// Reason of a parsing error: the code to close with, and text for the log.
struct frame_error {
    /// protocol_error, invalid_payload or message_too_big.
    close_code code = close_code::protocol_error;
    /// End of a sentence about the fault; a static text.
    std::string_view what;
};

/// Parser of the frames that one end receives. Strict: masks as the role demands, no reserved bit
/// or opcode, control frames whole and of at most 125 bytes, lengths in their shortest form,
/// messages never mixed, close codes that may be sent, text in UTF-8. Text is checked as it comes,
/// so an invalid message ends at its first wrong byte. Holds no data but a control frame's payload.
/// One thread.
class parser {
public:
    /// Begins with the first byte behind the handshake, on the end that `reads` names: a server's
    /// parser expects masked frames.
    explicit parser(role reads, const limits& l = {}) noexcept : limits_(l), role_(reads) {}

    /// Accepts compressed messages (RSV1), once permessage-deflate was agreed on.
    void allow_compressed(bool allowed) noexcept { may_be_compressed_ = allowed; }

    /// Changes the limits, for all frames whose head has not been read.
    void set_limits(const limits& l) noexcept { limits_ = l; }

    /// Parses further, and unmasks data in place: call it again with the bytes behind `consumed`,
    /// never with the same bytes. Call it until it yields need_more, also with an empty input: it
    /// stops at every event. After close it drops all input; after error it only repeats the error.
    /// Throws std::bad_alloc when there is no memory for a control frame's payload; the connection
    /// can only be dropped then.
    step parse(mutable_bytes input);

    /// As parse(), but data goes unmasked to the end of `message`, in the one pass that copies it;
    /// the input is left as it is. Without the events message_begin and data: a message comes as
    /// message_end alone. The limits bound what is added; the buffer grows as data comes, and never
    /// by more than reserve_limit for data that was only announced.
    step collect(std::string_view input, byte_buffer& message);

    /// The most memory that collect() reserves for a frame before its data has come.
    static constexpr std::size_t reserve_limit = 64 * 1024;

    /// The message at hand, from message_begin until the head of the next one.
    const message_info& message() const noexcept { return message_; }

    /// Meaningful after event::error.
    const frame_error& error() const noexcept { return error_; }

    /// Checks the end of the peer's bytes: errc::truncated when no close frame came before it,
    /// errc::malformed after an error.
    result<> finish() const noexcept;

    /// True between two messages, with no byte of a frame read.
    bool is_idle() const noexcept {
        return state_ == state::head && head_size_ == 0 && !is_in_message_;
    }
    /// True once the peer's close frame has come.
    bool is_closed() const noexcept { return state_ == state::closed; }

private:
    enum class state : unsigned char {
        head,
        payload,  // of a data frame
        control,  // payload of a control frame
        closed,
        failed,
    };
    enum class head_part : unsigned char { first_byte, second_byte, length, mask };
    using control_payload = std::array<char, control_payload_limit>;

    step run(std::string_view input, std::byte* in_place, byte_buffer* message);
    // Takes bytes of the head off `input`; true when all of it has come, or it is wrong.
    bool read_head(std::string_view input, std::size_t& used) noexcept;
    bool check_first_byte() noexcept;
    bool check_second_byte() noexcept;
    bool check_length() noexcept;
    // True when a message begins.
    bool begin_frame();
    // Takes bytes of a control frame's payload; true when all of it has come.
    bool take_control(std::string_view input, std::size_t& used) noexcept;
    step end_control(std::size_t used) noexcept;
    // Unmasks and checks data of the frame at the front of the input; returns how much is valid.
    std::size_t take_data(std::string_view input, std::byte* in_place, byte_buffer* message);
    // Ends parsing; returns false. `what` must live as long as the program.
    bool fail(close_code code, std::string_view what) noexcept;

    limits limits_;
    std::uint64_t left_ = 0;         // of the frame's payload
    std::uint64_t mask_offset_ = 0;  // of the next byte in the frame's payload
    message_info message_;
    frame_error error_;
    std::unique_ptr<control_payload> control_;  // while a control frame with a payload is open
    std::array<std::uint8_t, 14> head_{};
    std::uint8_t head_size_ = 0;    // bytes of it that have come
    std::uint8_t head_wanted_ = 1;  // bytes of it up to the next part's end
    head_part part_ = head_part::first_byte;
    std::uint8_t control_size_ = 0;
    opcode kind_ = opcode::continuation;  // of the frame
    mask_key mask_{};
    utf8_validator text_;
    role role_;
    state state_ = state::head;
    bool is_last_ = false;  // FIN of the data frame
    bool is_in_message_ = false;
    bool may_be_compressed_ = false;
};

}  // namespace eddy::websocket
