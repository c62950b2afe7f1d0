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

/// The date in a field; none without the field, or with a malformed one, which is ignored.
std::optional<std::int64_t> date_in(const http1::header_list& fields, std::string_view name,
                                    std::int64_t now) noexcept {
    const auto value = fields.find(name);
    return value ? parse_http_date(*value, now) : std::nullopt;
}

}  // namespace

precondition evaluate_preconditions(const http1::header_list& fields, const validators& of,
                                    bool reads) noexcept {
    if (const auto match = matches(fields, "if-match", of.etag, is_same_strongly)) {
        if (!*match) return precondition::failed;
    } else if (const auto since = date_in(fields, "If-Unmodified-Since", of.now)) {
        if (of.modified > *since) return precondition::failed;
    }
    if (const auto match = matches(fields, "if-none-match", of.etag, is_same_weakly)) {
        if (*match) return reads ? precondition::not_modified : precondition::failed;
    } else if (const auto since = date_in(fields, "If-Modified-Since", of.now); since && reads) {
        if (of.modified <= *since) return precondition::not_modified;
    }
    return precondition::holds;
}

bool is_range_wanted(const http1::header_list& fields, const validators& of) noexcept {
    const auto value = fields.find("If-Range");
    if (!value) return true;
    if (const auto tag = parse_entity_tag(*value)) {
        const auto own = parse_entity_tag(of.etag);
        return own && is_same_strongly(*tag, *own);
    }
    const auto date = parse_http_date(*value, of.now);
    // Within its second a file may change again without another date.
    return date && *date == of.modified && of.now > of.modified;
}

}  // namespace eddy::http
