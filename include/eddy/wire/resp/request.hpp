// Parser of RESP requests: arrays of bulk strings, and inline commands as typed into a terminal.
//
// A connection owns a request_parser: some three hundred bytes with the progress of an incomplete
// command. A loop owns one request_batch, shared by its connections: it parses a pipeline at once,
// so that the executor sees many commands before it runs the first.
//
//   batch.parse(parser, input)  ->  commands, bytes consumed, and why it stopped
//
// Accepts and refuses the same input as Redis 7.0, with its messages. Like Redis it does not check
// the two bytes behind a bulk string, nor the one behind a CR. It differs in three places: a NUL
// byte in a line is a byte like any other, where Redis would wait for more; an array has at most a
// million arguments by default, where Redis allows 2^31 - 1; a command over max_request is answered
// with an error before the connection closes, where Redis only closes it.
#pragma once

#include <eddy/wire/resp/command.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

/// RESP, the Redis protocol, without I/O.
namespace eddy::resp {

/// Limits of a peer's requests, in bytes and counts. Over any of them, parsing ends with an error.
/// An inline command's arguments are bounded only by its line.
struct request_limits {
    std::size_t max_inline = 64 * 1024;         ///< an inline command's line, and any count's line
    std::size_t max_args = 1024 * 1024;         ///< an array's arguments, the name included
    std::size_t max_bulk = 512U << 20;          ///< one argument
    std::size_t max_request = 1U << 30;         ///< an array with its framing; at most 2 GiB
    std::size_t max_args_unauthenticated = 10;  ///< before the client has authenticated

    /// Bytes of one argument until then.
    std::size_t max_bulk_unauthenticated = 16 * 1024;
};

/// Outcome of a parser's call.
enum class parse_status : std::uint8_t {
    complete,   ///< a command (or a full batch) is there; the input may hold more
    need_more,  ///< the input ends within a command, or before one
    error,      ///< the peer broke the protocol: reply with the text, then close
};

/// Result of one call of request_parser::next().
struct request_outcome {
    /// With complete there is a command.
    parse_status status = parse_status::need_more;
    /// Bytes that the caller drops from its input's front once it is done with `request`. With
    /// need_more these are empty requests that were skipped.
    std::size_t consumed = 0;
    /// With need_more: least number of further bytes that the command needs; never 0. It is the
    /// peer's claim, so it may be any size up to the limits: reserve in steps.
    std::size_t wanted = 0;
    command request;         ///< with complete
    std::string_view error;  ///< with error: "ERR Protocol error: ...", lives as long as the parser
};

/// Parses one command at a time from a byte stream. The work is linear in the bytes, however they
/// are split. Memory: nothing is allocated for arrays of up to `inline_args` arguments; more take
/// 24 bytes for each argument that has arrived. One thread.
class request_parser {
public:
    /// Arguments for which a command needs no memory beyond the parser's own.
    static constexpr std::size_t inline_args = 8;
    /// Room for this many arguments may stay allocated between commands.
    static constexpr std::size_t kept_args = 1024;
    /// Room for this many bytes of unescaped inline arguments may, too.
    static constexpr std::size_t kept_scratch = 4096;

    /// Begins with the first byte of a connection.
    explicit request_parser(const request_limits& limits = {});
    /// The other one may only be assigned to or die.
    request_parser(request_parser&&) noexcept;
    /// The same.
    request_parser& operator=(request_parser&&) noexcept;
    ~request_parser();

    /// Parses the command at the start of `input`. After need_more, call again with an input whose
    /// first byte is the one behind what was consumed and that holds the same bytes and more, at
    /// any address. The command's views point into `input` or into the parser and end with the next
    /// call. Call until need_more before waiting for bytes, even with an empty input: that gives
    /// back what a huge command had allocated. Empty requests ("*0", "*-1", an empty line) are
    /// skipped. An error is final: every later call returns it.
    request_outcome next(std::string_view input, bool unauthenticated = false);

    /// True when part of a command was seen: the connection is not idle between two commands.
    bool in_progress() const noexcept { return stage_ != stage::start || scanned_ != 0; }

    /// After need_more: bytes of the argument of which the input has the head and not yet the whole
    /// body; 0 when there is none. An inline line has none.
    std::size_t open_argument() const noexcept {
        return stage_ == stage::bulk_body ? bulk_size_ : 0;
    }
    /// Offset of its body in the input, counted from the byte behind what was consumed.
    std::size_t open_argument_offset() const noexcept { return position_; }
    /// Supplies the open argument, whole, at `at`. The input then continues behind the argument's
    /// two trailing bytes, so that a large argument need not be copied into it. `at` must live as
    /// long as the command's views. Call next() afterwards, even without more input.
    void place_argument(const char* at);

    /// The limits in force.
    const request_limits& limits() const noexcept { return limits_; }
    /// They hold for what is parsed from now on. The last call's views stay.
    void set_limits(const request_limits& limits) noexcept;

private:
    friend class request_batch;

    enum class stage : std::uint8_t { start, bulk_head, bulk_body, failed };
    struct argument {
        std::uint32_t offset, size;
    };
    static constexpr std::uint32_t is_placed = 1U << 31;  // the offset is a number of those placed
    struct spill;  // what many or placed arguments, escapes or an error need; made on demand

    request_outcome next_slow(std::string_view input, bool unauthenticated);
    request_outcome parse_array(std::string_view input, bool unauthenticated);
    request_outcome parse_inline(std::string_view input);
    bool split_inline(std::string_view line);
    bool unquote(std::string_view line, std::size_t& at);
    bool find_line_end(std::string_view input, std::size_t& end) noexcept;
    void add_argument(std::size_t offset, std::size_t size);
    void add_view(std::string_view view);
    request_outcome finish_array(const char* base);
    request_outcome finish(std::size_t consumed);
    request_outcome fail(std::string_view text);
    void trim() noexcept;
    spill& spilled();

    request_limits limits_;
    stage stage_ = stage::start;
    bool uses_scratch_ = false;   // the last command's views point into the spill's scratch
    std::uint32_t position_ = 0;  // bytes of the current command that are understood
    std::uint32_t scanned_ = 0;   // bytes of it in which no line ends behind position_
    std::uint32_t args_expected_ = 0;
    std::uint32_t args_seen_ = 0;
    std::uint32_t bulk_size_ = 0;
    std::uint32_t placed_bytes_ = 0;  // of the command's placed arguments, with what is behind them
    std::array<argument, inline_args> arguments_;  // offsets: the input may move between calls
    std::array<std::string_view, inline_args> views_;
    std::unique_ptr<spill> spill_;
};

/// Result of one call of request_batch::parse().
struct batch_outcome {
    /// complete: the batch is full, execute it and call again. need_more: the input is exhausted.
    /// error: `commands` came before it and still are to be executed and answered.
    parse_status status = parse_status::need_more;
    std::size_t consumed = 0;  ///< as in request_outcome
    std::size_t wanted = 0;    ///< as in request_outcome

    /// In the order in which they came.
    std::span<const command> commands;
    std::string_view error;  ///< as in request_outcome
};

/// Parses a pipeline: up to `max_commands` commands from one contiguous input. 18 KiB, no
/// allocation of its own. One thread; shared by connections that are served in turn.
class request_batch {
public:
    /// Commands in a batch.
    static constexpr std::size_t max_commands = 128;
    /// Arguments of all commands in a batch together.
    static constexpr std::size_t max_args = 1024;

    request_batch() noexcept = default;
    request_batch(const request_batch&) = delete;
    request_batch& operator=(const request_batch&) = delete;

    /// Parses what `input` holds; `parser` is the connection's and carries an incomplete command
    /// over to the next call, under the rules of request_parser::next(). The commands end with the
    /// next call on this batch or that parser, or with the input's bytes. A command of more than
    /// `max_args` arguments, or one with escapes in an inline line, ends its batch. Of an
    /// unauthenticated client one command is parsed at a time: it may be the one that
    /// authenticates.
    batch_outcome parse(request_parser& parser, std::string_view input,
                        bool unauthenticated = false);

private:
    std::array<command, max_commands> commands_;
    std::array<std::string_view, max_args> args_;
};

}  // namespace eddy::resp
