// Layout of tables, and quantities for people.
#include "cli/text/table.hpp"

#include "base/text/terminal_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace eddy::cli {
namespace {

// Characters, counted as the bytes that begin one in UTF-8.
std::size_t width_of(std::string_view text) {
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
        return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
    }));
}

std::string_view escape_of(tint colour) {
    switch (colour) {
        case tint::none: return "";
        case tint::bold: return "\x1b[1m";
        case tint::green: return "\x1b[32m";
        case tint::yellow: return "\x1b[33m";
        case tint::red: return "\x1b[31m";
        case tint::faint: return "\x1b[2m";
    }
    return "";
}

}  // namespace

std::string tinted(std::string_view text, tint colour, bool colours) {
    if (!colours || colour == tint::none) return std::string(text);
    return fmt::format("{}{}\x1b[0m", escape_of(colour), text);
}

void table::add(std::vector<cell> row) {
    row.resize(header_.size());
    for (cell& c : row) c.text = printable(c.text);
    rows_.push_back(std::move(row));
}

std::vector<std::size_t> table::widths() const {
    std::vector<std::size_t> widths;
    for (std::size_t column = 0; column < header_.size(); ++column) {
        std::size_t width = width_of(header_[column]);
        for (const auto& row : rows_) width = std::max(width, width_of(row[column].text));
        widths.push_back(width);
    }
    return widths;
}

std::size_t table::width() const {
    std::size_t sum = 0;
    for (const std::size_t width : widths()) sum += width + gap;
    return sum - std::min(sum, gap);
}

std::string table::to_string(bool colours) const {
    const std::vector<std::size_t> widths = this->widths();
    std::string text;
    const auto add_line = [&](auto&& text_of, auto&& tint_of) {
        std::size_t last = header_.size();
        while (last > 0 && text_of(last - 1).empty()) --last;
        for (std::size_t column = 0; column < last; ++column) {
            const std::string_view content = text_of(column);
            text += tinted(content, tint_of(column), colours);
            if (column + 1 < last) text.append(widths[column] - width_of(content) + gap, ' ');
        }
        text += '\n';
    };
    add_line([&](std::size_t c) -> std::string_view { return header_[c]; },
             [](std::size_t) { return tint::bold; });
    for (const auto& row : rows_)
        add_line([&](std::size_t c) -> std::string_view { return row[c].text; },
                 [&](std::size_t c) { return row[c].colour; });
    return text;
}

std::string format_age(double seconds) {
    constexpr double longest = 1e15;  // fits the conversion, which is undefined beyond its type
    const auto s = static_cast<long long>(std::min(std::max(0.0, seconds), longest));
    if (s < 60) return fmt::format("{}s", s);
    if (s < 3600) return fmt::format("{}m {}s", s / 60, s % 60);
    if (s < 86400) return fmt::format("{}h {}m", s / 3600, s % 3600 / 60);
    return fmt::format("{}d {}h", s / 86400, s % 86400 / 3600);
}

std::string format_bytes(double bytes) {
    static constexpr std::string_view units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    std::size_t unit = 0;
    while (bytes >= 1024 && unit + 1 < std::size(units)) {
        bytes /= 1024;
        ++unit;
    }
    if (unit == 0 || bytes >= 100) return fmt::format("{:.0f} {}", bytes, units[unit]);
    return fmt::format("{:.1f} {}", bytes, units[unit]);
}

std::string format_count(double count) {
    if (count != std::floor(count) || std::abs(count) > 1e15) return fmt::format("{:.6g}", count);
    std::string digits = fmt::format("{:.0f}", std::abs(count));
    for (std::size_t at = digits.size(); at > 3;) {
        at -= 3;
        digits.insert(at, ",");
    }
    return count < 0 ? "-" + digits : digits;
}

}  // namespace eddy::cli
