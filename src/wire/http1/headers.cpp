// Storage and lookup of header fields.
#include <eddy/wire/http1/headers.hpp>

#include <eddy/base/assert.hpp>

#include "wire/http1/text.hpp"

#include <algorithm>
#include <cstring>

namespace eddy::http1 {
namespace {

/// Bytes of text that a list has room for with its first field.
constexpr std::size_t first_capacity = 64;
/// Fields that it has room for then.
constexpr std::size_t first_entries = 4;

}  // namespace

bool equal_ignoring_case(std::string_view a, std::string_view b) noexcept {
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) {
               return to_lower(x) == to_lower(y);
           });
}

bool is_token(std::string_view text) noexcept { return !text.empty() && token_bytes.has_all(text); }

bool is_field_value(std::string_view text) noexcept {
    if (text.size() >= sizeof(std::uint64_t)) {
        const auto word_at = [text](std::size_t at) {
            return load_word<std::uint64_t>(text.data() + at);
        };
        const std::size_t last = text.size() - sizeof(std::uint64_t);
        bool plain = is_free_of_controls(word_at(last));
        for (std::size_t at = 0; at < last; at += sizeof(std::uint64_t))
            plain &= is_free_of_controls(word_at(at));
        if (plain) return true;
    }
    bool bad = false;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        bad |= (byte < 0x20 && byte != '\t') || byte == 0x7f;
    }
    return !bad;
}

std::optional<std::string_view> header_list::find(std::string_view name) const noexcept {
    for (const header h : *this) {
        if (equal_ignoring_case(h.name, name)) return h.value;
    }
    return std::nullopt;
}

bool header_list::contains_token(std::string_view name, std::string_view token) const noexcept {
    for (const header h : *this) {
        if (!equal_ignoring_case(h.name, name)) continue;
        std::string_view list = h.value;
        std::string_view item;
        while (next_item(list, item)) {
            if (equal_ignoring_case(item, token)) return true;
        }
    }
    return false;
}

result<> header_list::add(std::string_view name, std::string_view value) {
    if (!is_token(name) || !is_field_value(value)) return fail(errc::malformed);
    if (!has_room(name, value)) return fail(errc::limit_reached);
    append_valid(name, value);
    return {};
}

result<> header_list::set(std::string_view name, std::string_view value) {
    // The new one first: name and value may be views into this list.
    if (result<> added = add(name, value); !added) return added;
    const entry last = entries_.back();
    entries_.pop_back();
    erase_entries({text_.data() + last.name_at, last.name_size});
    entries_.push_back(last);
    compact();
    return {};
}

std::size_t header_list::remove(std::string_view name) noexcept {
    const std::size_t removed = erase_entries(name);
    if (removed > 0) compact();
    return removed;
}

std::size_t header_list::erase_entries(std::string_view name) noexcept {
    return std::erase_if(entries_, [this, name](const entry& e) {
        return equal_ignoring_case({text_.data() + e.name_at, e.name_size}, name);
    });
}

void header_list::compact() noexcept {
    std::size_t end = 0;
    const auto move_down = [this, &end](std::uint32_t& at, std::size_t size) {
        std::memmove(text_.data() + end, text_.data() + at, size);
        at = static_cast<std::uint32_t>(end);
        end += size;
    };
    for (entry& e : entries_) {  // in the order of their text
        move_down(e.name_at, e.name_size);
        move_down(e.value_at, e.value_size);
    }
    text_.resize(end);
}

bool header_list::has_room(std::string_view name, std::string_view value) const noexcept {
    const std::size_t room = size_limit - text_.size();
    return name.size() <= room && value.size() <= room - name.size();
}

void header_list::append_valid(std::string_view name, std::string_view value) {
    EDDY_ASSERT(has_room(name, value));
    const auto at = static_cast<std::uint32_t>(text_.size());
    const std::size_t needed = text_.size() + name.size() + value.size();
    if (text_.empty()) text_.reserve(std::max(needed, first_capacity));
    if (needed > text_.capacity()) {
        // The old text lives until the swap, since name and value may be views into it.
        std::string larger;
        larger.reserve(std::max(needed, text_.capacity() * 2));
        larger.append(text_).append(name).append(value);
        text_.swap(larger);
    } else {
        text_.append(name).append(value);
    }
    const auto name_size = static_cast<std::uint32_t>(name.size());
    if (entries_.capacity() == 0) entries_.reserve(first_entries);
    entries_.push_back({at, name_size, at + name_size, static_cast<std::uint32_t>(value.size())});
}

void header_list::assign_valid(std::string_view text, const entry* entries, std::size_t count) {
    // Consecutive messages of a connection often have heads of one size.
    if (text_.size() == text.size() && entries_.size() == count) {
        copy_short(text_.data(), text.data(), text.size());
    } else {
        entries_.clear();  // no entry lies beyond the text if an allocation fails
        text_.assign(text);
        entries_.resize(count);
    }
    for (std::size_t i = 0; i < count; ++i) entries_[i] = entries[i];
}

std::string_view reason_phrase(int status) noexcept {
    switch (status) {
        case 100: return "Continue";
        case 101: return "Switching Protocols";
        case 102: return "Processing";
        case 103: return "Early Hints";
        case 200: return "OK";
        case 201: return "Created";
        case 202: return "Accepted";
        case 203: return "Non-Authoritative Information";
        case 204: return "No Content";
        case 205: return "Reset Content";
        case 206: return "Partial Content";
        case 207: return "Multi-Status";
        case 208: return "Already Reported";
        case 226: return "IM Used";
        case 300: return "Multiple Choices";
        case 301: return "Moved Permanently";
        case 302: return "Found";
        case 303: return "See Other";
        case 304: return "Not Modified";
        case 307: return "Temporary Redirect";
        case 308: return "Permanent Redirect";
        case 400: return "Bad Request";
        case 401: return "Unauthorized";
        case 402: return "Payment Required";
        case 403: return "Forbidden";
        case 404: return "Not Found";
        case 405: return "Method Not Allowed";
        case 406: return "Not Acceptable";
        case 407: return "Proxy Authentication Required";
        case 408: return "Request Timeout";
        case 409: return "Conflict";
        case 410: return "Gone";
        case 411: return "Length Required";
        case 412: return "Precondition Failed";
        case 413: return "Content Too Large";
        case 414: return "URI Too Long";
        case 415: return "Unsupported Media Type";
        case 416: return "Range Not Satisfiable";
        case 417: return "Expectation Failed";
        case 421: return "Misdirected Request";
        case 422: return "Unprocessable Content";
        case 423: return "Locked";
        case 424: return "Failed Dependency";
        case 425: return "Too Early";
        case 426: return "Upgrade Required";
        case 428: return "Precondition Required";
        case 429: return "Too Many Requests";
        case 431: return "Request Header Fields Too Large";
        case 451: return "Unavailable For Legal Reasons";
        case 500: return "Internal Server Error";
        case 501: return "Not Implemented";
        case 502: return "Bad Gateway";
        case 503: return "Service Unavailable";
        case 504: return "Gateway Timeout";
        case 505: return "HTTP Version Not Supported";
        case 506: return "Variant Also Negotiates";
        case 507: return "Insufficient Storage";
        case 508: return "Loop Detected";
        case 510: return "Not Extended";
        case 511: return "Network Authentication Required";
        default: return "Unknown";
    }
}

}  // namespace eddy::http1
