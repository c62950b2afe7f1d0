// Reading of Accept-Encoding.
#include "http/fields/content_coding.hpp"

#include "base/text/text.hpp"
#include "wire/http1/text.hpp"

#include <algorithm>
#include <optional>

namespace eddy::http {
namespace {

constexpr std::array<std::string_view, content_codings> names{"identity", "gzip", "deflate", "br",
                                                              "zstd"};
constexpr unsigned full_quality = 1000;

/// "0", "1", "0.5", "1.000" in thousandths; none for what is no weight.
std::optional<unsigned> parse_weight(std::string_view text) noexcept {
    constexpr std::size_t longest = sizeof "0.123" - 1;
    if (text.empty() || text.size() > longest || (text[0] != '0' && text[0] != '1'))
        return std::nullopt;
    unsigned weight = text[0] == '1' ? full_quality : 0;
    if (text.size() > 1 && text[1] != '.') return std::nullopt;
    unsigned unit = full_quality / 10;
    for (const char c : text.substr(std::min<std::size_t>(2, text.size()))) {
        if (!is_digit(c)) return std::nullopt;
        weight += static_cast<unsigned>(c - '0') * unit;
        unit /= 10;
    }
    return weight <= full_quality ? std::optional(weight) : std::nullopt;
}

/// The weight of an item's parameters, which follow its name.
std::optional<unsigned> weight_of(std::string_view parameters) noexcept {
    if (parameters.empty()) return full_quality;
    parameters = http1::trim(parameters.substr(1));
    if (parameters.size() < 2 || to_lower(parameters[0]) != 'q' || parameters[1] != '=')
        return std::nullopt;
    return parse_weight(parameters.substr(2));
}

std::string_view without_alias(std::string_view name) noexcept {
    return is_word(name, "x-gzip") ? names[static_cast<std::size_t>(content_coding::gzip)] : name;
}

}  // namespace

std::string_view to_string(content_coding coding) noexcept {
    return names[static_cast<std::size_t>(coding)];
}

coding_list codings_of(const http1::header_list& fields) noexcept {
    coding_list found;
    for (const http1::header field : fields) {
        if (!is_word(field.name, "content-encoding")) continue;
        std::string_view rest = field.value;
        std::string_view item;
        while (http1::next_item(rest, item)) {
            item = without_alias(item);
            if (item.empty() || is_word(item, names[0])) continue;
            std::size_t known = 1;
            while (known < names.size() && !is_word(item, names[known])) ++known;
            if (known == names.size())
                found.is_known = false;
            else if (found.count < found.all.size())
                found.all[found.count] = static_cast<content_coding>(known);
            ++found.count;
        }
    }
    return found;
}

std::optional<content_coding> coding_of(const http1::header_list& fields) noexcept {
    const coding_list found = codings_of(fields);
    if (!found.is_known || found.count > 1) return std::nullopt;
    return found.count == 0 ? content_coding::identity : found.all[0];
}

accepted_codings::accepted_codings(const http1::header_list& fields) noexcept {
    std::array<std::optional<unsigned>, content_codings> named;
    std::optional<unsigned> others;
    for (const http1::header field : fields) {
        if (!is_word(field.name, "accept-encoding")) continue;
        std::string_view rest = field.value;
        std::string_view item;
        while (http1::next_item(rest, item)) {
            const std::size_t end = std::min(item.find(';'), item.size());
            const auto weight = weight_of(item.substr(end));
            if (!weight) continue;
            const std::string_view name = without_alias(http1::trim(item.substr(0, end)));
            if (name == "*") others = weight;
            for (std::size_t i = 0; i < names.size(); ++i)
                if (is_word(name, names[i])) named[i] = weight;
        }
    }
    for (std::size_t i = 0; i < names.size(); ++i)
        qualities_[i] = named[i].value_or(others.value_or(i == 0 ? 1 : 0));
}

content_coding accepted_codings::choose(std::span<const content_coding> offered) const noexcept {
    content_coding best = content_coding::identity;
    unsigned highest = 0;
    for (const content_coding each : offered) {
        if (quality(each) <= highest) continue;
        best = each;
        highest = quality(each);
    }
    return best;
}

}  // namespace eddy::http
