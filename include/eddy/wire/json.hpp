// JSON text without I/O (RFC 8259): a writer of objects, arrays and values. Reading is left to a
// library of the program's choice.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace eddy {

/// Writes one JSON text, without white space:
///
///     json_writer out;
///     out.begin_object().member("name", name).key("ids").begin_array();
///     for (const int id : ids) out.value(id);
///     out.end_array().end_object();
///     return out.take();
///
/// Calls out of order, such as a value without a key in an object, or take() before the end, are
/// refused by assertion. Texts should be UTF-8: each byte that belongs to no valid character
/// becomes U+FFFD. One thread.
class json_writer {
public:
    /// Most levels of objects and arrays.
    static constexpr unsigned depth_limit = 64;

    /// Begins an object, as a value.
    json_writer& begin_object() { return begin('{'); }
    /// Ends it.
    json_writer& end_object() { return end('}'); }
    /// Begins an array, as a value.
    json_writer& begin_array() { return begin('['); }
    /// Ends it.
    json_writer& end_array() { return end(']'); }

    /// The name of an object's next member, whose value follows. Names are not compared.
    json_writer& key(std::string_view name);

    /// A string; it is copied.
    json_writer& value(std::string_view text);
    /// The same.
    json_writer& value(const char* text) { return value(std::string_view(text)); }
    /// true or false.
    json_writer& value(std::same_as<bool> auto truth) { return plain(truth ? "true" : "false"); }
    /// An integer.
    json_writer& value(std::signed_integral auto number) { return integer(std::int64_t{number}); }
    /// The same without a sign.
    json_writer& value(std::unsigned_integral auto number)
        requires(!std::same_as<decltype(number), bool>)
    {
        return unsigned_integer(std::uint64_t{number});
    }
    /// A number that reads back as the same; null for infinity and what is no number.
    json_writer& value(double number);
    /// null.
    json_writer& null() { return plain("null"); }
    /// A value that is JSON already; it is not checked.
    json_writer& raw(std::string_view json) { return plain(json); }

    /// A member: key() and value().
    template <class T>
    json_writer& member(std::string_view name, const T& its) {
        return key(name).value(its);
    }

    /// Takes the text, which is complete, and begins a new one.
    std::string take();

private:
    json_writer& begin(char bracket);
    json_writer& end(char bracket);
    json_writer& plain(std::string_view text);
    json_writer& integer(std::int64_t number);
    json_writer& unsigned_integer(std::uint64_t number);
    void begin_value();
    void append_string(std::string_view text);

    bool is_in_object() const noexcept { return depth_ > 0 && (objects_ >> (depth_ - 1) & 1) != 0; }

    std::string text_;
    std::uint64_t objects_ = 0;  // a bit for each level: whether it is an object
    unsigned depth_ = 0;
    bool needs_comma_ = false;  // before the next key, or value of an array
    bool has_key_ = false;      // whose value is to come
    bool is_complete_ = false;
};

/// True if a JSON text has arrays and objects nested deeper than `levels`. Parsers without
/// recursion accept any depth, but writing or freeing their values recurses as deep. Any thread.
bool nests_deeper(std::string_view text, std::size_t levels) noexcept;

/// Limits of a JSON text, checked in one pass before it is parsed.
struct json_shape {
    /// Nested arrays and objects.
    std::size_t depth;
    /// Members of all objects together. A parser that keeps the order of members compares each one
    /// with all earlier ones, so that its time is quadratic in their number.
    std::size_t members;
};
/// The limit that a JSON text exceeds.
enum class json_excess : std::uint8_t { none, depth, members };

/// The first limit that a JSON text exceeds. Any thread.
json_excess excess_of(std::string_view text, json_shape most) noexcept;

}  // namespace eddy
