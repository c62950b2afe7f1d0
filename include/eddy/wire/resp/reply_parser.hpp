// Parser of RESP2 and RESP3 replies into a flat run of events, for clients: command line, load
// generator's verification, replication.
//
//   reply_parser parser;
//   for (;;) {
//       reply_outcome o = parser.next(input);    // one event, or why there is none
//       ...    // use o.event, then drop o.consumed bytes from the input's front
//   }
//
// "*2 $3 foo :7" comes as array(count 2), bulk("foo") at depth 1, integer(7) at depth 1 and
// ends_reply.
#pragma once

#include <eddy/wire/resp/request.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace eddy::resp {

/// The types of RESP2 and RESP3, and which field of reply_event has the value.
enum class reply_type : std::uint8_t {
    simple,      ///< text
    error,       ///< text, which begins with its code word; from a line or a RESP3 bulk error
    integer,     ///< integer
    bulk,        ///< text: any bytes
    null,        ///< RESP2's null bulk string and null array, RESP3's null
    array,       ///< count elements follow, one level deeper
    map,         ///< as array; keys and values alternate; count is twice the number of pairs
    set,         ///< as array
    push,        ///< as array; not the answer to a request
    attribute,   ///< as map; describes the value that follows it
    boolean,     ///< integer: 1 or 0
    number,      ///< number
    big_number,  ///< text: decimal digits, perhaps a sign
    verbatim,    ///< text; format is its three letters
};

/// Limits of a server's replies. Over any of them, parsing ends with an error.
struct reply_limits {
    std::size_t max_line = 64 * 1024;         ///< bytes of a line: status, error, number, count
    std::size_t max_bulk = 512U << 20;        ///< bytes of one string
    std::uint64_t max_elements = 1ULL << 32;  ///< of one array; a map's pair counts two
};

/// One value, or the head of an aggregate. The views point into the input.
struct reply_event {
    /// The kind, which determines the fields below that are set.
    reply_type type = reply_type::null;
    bool ends_reply = false;   ///< the whole reply, with all that is nested in it, is complete
    std::uint32_t depth = 0;   ///< aggregates around this value
    std::int64_t integer = 0;  ///< integer, boolean
    std::uint64_t count = 0;   ///< elements of an aggregate
    double number = 0;         ///< number
    std::string_view text;     ///< simple, error, bulk, big_number, verbatim
    std::string_view format;   ///< verbatim
};

/// Result of one call of reply_parser::next().
struct reply_outcome {
    /// With complete there is an event.
    parse_status status = parse_status::need_more;
    std::size_t consumed = 0;  ///< with complete: the event's bytes; otherwise 0
    std::size_t wanted = 0;    ///< with need_more: least number of further bytes, as the peer
                               ///< claims
    reply_event event;         ///< with complete
    std::string_view error;    ///< with error: its description, a static text
};

/// Incremental; never allocates; its work is linear in the bytes. RESP3's streamed strings and
/// aggregates ("$?") are refused: no Redis command sends them. One thread.
class reply_parser {
public:
    /// Aggregates within one another. Redis itself nests eight deep at most (COMMAND DOCS).
    static constexpr std::size_t max_depth = 32;

    /// Begins with the first byte of a connection.
    explicit reply_parser(const reply_limits& limits = {}) noexcept : limits_(limits) {}

    /// Parses the value at the start of `input`. After need_more, call again with the same bytes
    /// and more behind them, at any address; after complete, with what follows the event's bytes.
    /// An error is final: every later call returns it.
    reply_outcome next(std::string_view input) noexcept;

    /// True between two replies.
    bool at_boundary() const noexcept { return !within_reply_ && scanned_ == 0 && error_.empty(); }

private:
    struct level {
        std::uint64_t left;  // elements still to come
        bool attribute;      // its end completes no value
    };

    reply_outcome fail(std::string_view text) noexcept;
    bool parse_scalar(char type, std::string_view text, reply_event& event) noexcept;
    bool parse_string(char type, std::string_view text, reply_event& event) noexcept;
    void open(char type, std::uint64_t count, reply_event& event) noexcept;
    void close_value(reply_event& event) noexcept;

    reply_limits limits_;
    std::size_t scanned_ = 0;  // bytes of the current line that hold no LF
    std::size_t depth_ = 0;
    bool within_reply_ = false;
    std::string_view error_;
    std::array<level, max_depth> levels_;
};

}  // namespace eddy::resp
