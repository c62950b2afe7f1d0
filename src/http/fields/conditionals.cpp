// Preconditions in their order.
#include "http/fields/conditionals.hpp"

#include "base/text/text.hpp"
#include "http/fields/entity_tag.hpp"
#include "http/fields/http_date.hpp"

#include <optional>

namespace eddy::http {
namespace {

using comparison = bool (*)(entity_tag, entity_tag) noexcept;

/// True if a tag in the fields of this name, which is in lower case, equals `etag` or is "*". None
/// without such a field. Tags before a malformed item count.
std::optional<bool> matches(const http1::header_list& fields, std::string_view name,
                            std::string_view etag, comparison is_same) noexcept {
    std::optional<bool> found;
    for (const http1::header field : fields) {
        if (!is_word(field.name, name)) continue;
        if (!found) found = false;
        if (field.value == "*") return true;
        const auto own = parse_entity_tag(etag);
        entity_tag_reader tags(field.value);
        while (const auto tag = tags.next())
            if (own && is_same(*tag, *own)) return true;
    }
    return found;
}

/// The fields of a name that may have one value.
struct single_field {
    std::size_t count = 0;
    std::string_view value;  // of the last one
};

/// `name` is in lower case.
single_field find_single(const http1::header_list& fields, std::string_view name) noexcept {
    single_field found;
    for (const http1::header field : fields) {
        if (!is_word(field.name, name)) continue;
        ++found.count;
        found.value = field.value;
    }
    return found;
}

/// The date in a field; none without the field, with a malformed one or with several, which are
/// ignored (RFC 9110, 13.1.3 and 13.1.4).
std::optional<std::int64_t> date_in(const http1::header_list& fields, std::string_view name,
                                    std::int64_t now) noexcept {
    const single_field found = find_single(fields, name);
    return found.count == 1 ? parse_http_date(found.value, now) : std::nullopt;
}

}  // namespace

precondition evaluate_preconditions(const http1::header_list& fields, const validators& of,
                                    bool reads) noexcept {
    if (const auto match = matches(fields, "if-match", of.etag, is_same_strongly)) {
        if (!*match) return precondition::failed;
    } else if (const auto since = date_in(fields, "if-unmodified-since", of.now)) {
        if (of.modified > *since) return precondition::failed;
    }
    if (const auto match = matches(fields, "if-none-match", of.etag, is_same_weakly)) {
        if (*match) return reads ? precondition::not_modified : precondition::failed;
    } else if (const auto since = date_in(fields, "if-modified-since", of.now); since && reads) {
        if (of.modified <= *since) return precondition::not_modified;
    }
    return precondition::holds;
}

bool is_range_wanted(const http1::header_list& fields, const validators& of) noexcept {
    const single_field found = find_single(fields, "if-range");
    if (found.count == 0) return true;
    // Several are no validator, as a list of them is none. Without them the range of a
    // representation that has changed would be sent.
    if (found.count > 1) return false;
    if (const auto tag = parse_entity_tag(found.value)) {
        const auto own = parse_entity_tag(of.etag);
        return own && is_same_strongly(*tag, *own);
    }
    const auto date = parse_http_date(found.value, of.now);
    // Within its second a file may change again without another date.
    return date && *date == of.modified && of.now > of.modified;
}

}  // namespace eddy::http
