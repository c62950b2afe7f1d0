// Replies of a cache as text: as redis-cli shows them on a terminal, as it writes them to a pipe,
// and as JSON.
#pragma once

#include <eddy/wire/resp/reply_parser.hpp>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cli {

/// One reply with all that is nested in it.
struct reply {
    resp::reply_type type = resp::reply_type::null;
    std::int64_t integer = 0;
    double number = 0;
    std::string text;
    std::vector<reply> elements;  ///< of a map: keys and values, alternating
};

/// Puts a stream's bytes together to replies. What it keeps is one reply, as large as the server
/// makes it; attributes are left out.
class reply_reader {
public:
    /// Takes the next piece of the stream.
    void feed(std::string_view bytes) { unread_.append(bytes); }
    /// True when a whole reply was there, which is in `into` then. The error is the fault of the
    /// stream, of which nothing more can be read.
    std::expected<bool, std::string> next(reply& into);

private:
    struct open_aggregate {
        reply value;
        std::uint64_t left;
        bool dropped;  // an attribute
    };

    bool add(reply value);

    resp::reply_parser parser_;
    std::string unread_;
    std::vector<open_aggregate> open_;
    reply whole_;
};

/// For people: `"text"`, `(integer) 1`, `1) "a"`, with a newline at the end.
std::string reply_for_people(const reply& of);
/// The bytes as they are, an element a line.
std::string raw_reply(const reply& of);
/// One line of JSON. Text that is no UTF-8 becomes {"base64": "..."}, errors {"error": "..."}.
std::string json_reply(const reply& of);

/// Takes a line apart into words as redis-cli does, with "\x00" and 'quotes'. The error is a
/// sentence.
std::expected<std::vector<std::string>, std::string> split_line(std::string_view line);

}  // namespace eddy::cli
