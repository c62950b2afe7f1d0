// Fuzzes the readers of HTTP's fields and of paths to files: no input may crash them, and what they
// say keeps its bounds.
//
// The first byte is the size that ranges are of; the rest is the text.
#include <eddy/base/assert.hpp>
#include <eddy/http/cookie.hpp>
#include <eddy/wire/http1/parameters.hpp>

#include "http/fields/byte_ranges.hpp"
#include "http/fields/conditionals.hpp"
#include "http/fields/content_coding.hpp"
#include "http/fields/entity_tag.hpp"
#include "http/fields/http_date.hpp"
#include "http/files/file_path.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace {

using namespace eddy;
using namespace eddy::http;

constexpr std::int64_t now = 1'795'000'000;

void read_date(std::string_view text) {
    const auto seconds = parse_http_date(text, now);
    if (!seconds) return;
    // A leap second behind the last year has no date of its own.
    if (*seconds > latest_http_date) return;
    http_date_writer writer;
    EDDY_ASSERT(parse_http_date(writer.write(*seconds), now) == seconds);
}

void read_tags(std::string_view text) {
    entity_tag_reader tags(text);
    while (const auto tag = tags.next()) {
        const std::string whole = (tag->is_weak ? "W/" : "") + std::string(tag->opaque);
        const auto again = parse_entity_tag(whole);
        EDDY_ASSERT(again && is_same_weakly(*again, *tag) && again->is_weak == tag->is_weak);
    }
}

void read_ranges(std::string_view text, std::uint64_t size) {
    const range_selection selected = select_ranges(text, size);
    EDDY_ASSERT(selected.ranges.size() <= range_limit);
    std::uint64_t sum = 0;
    for (const byte_range& each : selected.ranges) {
        EDDY_ASSERT(each.size > 0 && each.first < size && each.size <= size - each.first);
        sum += each.size;
    }
    EDDY_ASSERT(sum <= size);
}

void read_fields(std::string_view text) {
    http1::header_list fields;
    for (const char* name : {"If-Match", "If-None-Match", "If-Modified-Since",
                             "If-Unmodified-Since", "If-Range", "Accept-Encoding"}) {
        fields.clear();
        if (!fields.add(name, text)) return;
        const validators of{"\"a\"", now - 10, now};
        evaluate_preconditions(fields, of, true);
        is_range_wanted(fields, of);
        const accepted_codings accepted(fields);
        for (std::size_t i = 0; i < content_codings; ++i)
            EDDY_ASSERT(accepted.quality(static_cast<content_coding>(i)) <= 1000);
    }
}

// A cookie that may be set is read as it was set.
void read_cookies(std::string_view text) {
    cookie_reader reader(text);
    while (const auto found = reader.next()) {
        EDDY_ASSERT(!found->name.empty() && found->name.find(';') == found->name.npos);
        cookie set;
        set.name = found->name;
        set.value = found->value;
        set.secure = true;
        const auto field = format_cookie(set);
        if (!field) continue;
        cookie_reader again(*field);
        const auto first = again.next();
        EDDY_ASSERT(first && first->name == set.name && first->value == set.value);
    }
}

void read_parameters(std::string_view text) {
    http1::parameter_reader reader(text);
    while (const auto found = reader.next()) EDDY_ASSERT(http1::is_token(found->name));
}

void read_path(std::string_view text) {
    const auto path = decode_path(text, true);
    if (!path) return;
    const std::string slashed = "/" + path->name + "/";
    EDDY_ASSERT(slashed.find("/../") == slashed.npos && slashed.find("/./") == slashed.npos);
    EDDY_ASSERT(path->name.empty() || slashed.find("//") == slashed.npos);
    EDDY_ASSERT(slashed.find('\0') == slashed.npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
    read_date(text);
    read_tags(text);
    read_ranges(text, data[0]);
    read_ranges("bytes=" + std::string(text), data[0]);
    read_fields(text);
    read_path(text);
    read_cookies(text);
    read_parameters(text);
    return 0;
}
