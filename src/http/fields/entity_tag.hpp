// Entity tags (RFC 9110, 8.8.3): lists of them in conditional requests, and their comparison.
#pragma once

#include <optional>
#include <string_view>

namespace eddy::http {

/// An entity tag, such as W/"abc".
struct entity_tag {
    std::string_view opaque;  ///< with its quotes
    bool is_weak = false;
};

/// Walks a list of entity tags, in which commas may also stand between quotes. Empty items are
/// skipped. Views the list. One thread.
class entity_tag_reader {
public:
    explicit entity_tag_reader(std::string_view list) noexcept : rest_(list) {}

    /// The next tag; none at the end, and where no tag stands.
    std::optional<entity_tag> next() noexcept;
    /// True if next() ended where no tag stands.
    bool is_malformed() const noexcept { return is_malformed_; }

private:
    std::string_view rest_;
    bool is_malformed_ = false;
};

/// The tag that the whole text is; none for any other text.
std::optional<entity_tag> parse_entity_tag(std::string_view text) noexcept;

/// Strong comparison: both are strong and equal.
constexpr bool is_same_strongly(entity_tag a, entity_tag b) noexcept {
    return !a.is_weak && !b.is_weak && a.opaque == b.opaque;
}
/// Weak comparison: equal, whether strong or weak.
constexpr bool is_same_weakly(entity_tag a, entity_tag b) noexcept { return a.opaque == b.opaque; }

}  // namespace eddy::http
