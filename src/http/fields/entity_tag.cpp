// Reading of entity tags.
#include "http/fields/entity_tag.hpp"

#include <algorithm>
#include <cstddef>

namespace eddy::http {
namespace {

bool is_tag_byte(char c) noexcept {
    const auto byte = static_cast<unsigned char>(c);
    return byte > 0x20 && byte != '"' && byte != 0x7f;
}

/// Takes a tag off the front; none, and nothing taken, where there is none.
std::optional<entity_tag> take_tag(std::string_view& text) noexcept {
    entity_tag tag;
    tag.is_weak = text.starts_with("W/");
    const std::string_view quoted = text.substr(tag.is_weak ? 2 : 0);
    if (!quoted.starts_with('"')) return std::nullopt;
    const std::size_t end = quoted.find('"', 1);
    if (end == std::string_view::npos) return std::nullopt;
    tag.opaque = quoted.substr(0, end + 1);
    if (!std::ranges::all_of(tag.opaque.substr(1, end - 1), is_tag_byte)) return std::nullopt;
    text = quoted.substr(end + 1);
    return tag;
}

}  // namespace

std::optional<entity_tag> entity_tag_reader::next() noexcept {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(", \t"), rest_.size()));
    if (rest_.empty()) return std::nullopt;
    const auto tag = take_tag(rest_);
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t"), rest_.size()));
    if (tag && (rest_.empty() || rest_.front() == ',')) return tag;
    is_malformed_ = true;
    rest_ = {};
    return std::nullopt;
}

std::optional<entity_tag> parse_entity_tag(std::string_view text) noexcept {
    const auto tag = take_tag(text);
    return text.empty() ? tag : std::nullopt;
}

}  // namespace eddy::http
