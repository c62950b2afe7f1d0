// Layout of tables, and quantities for people.
#include "cli/text/table.hpp"

#include <eddy/base/assert.hpp>

#include "base/text/terminal_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

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

namespace {

/// The least that a shortened text keeps.
constexpr std::size_t shortest_text = 8;
constexpr std::string_view ellipsis = "…";

constexpr std::size_t column_gap = 2;

bool is_plain(std::string_view text) noexcept {
    return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

/// Columns of a table, of which some are left out, without a copy of the cells.
class fitting {
public:
    fitting(const std::vector<fitted_column>& columns, std::vector<std::vector<cell>>& rows)
        : columns_(columns), rows_(rows) {
        for (std::size_t at = 0; at < columns.size(); ++at) shown_.push_back(at);
        for (auto& row : rows) {
            EDDY_ASSERT(row.size() == columns.size());
            for (cell& each : row) {
                if (each.text.empty()) each.text = "-";
                if (!is_plain(each.text)) each.text = printable(each.text);
            }
        }
        for (std::size_t at = 0; at < columns.size(); ++at) widths_.push_back(width_at(at));
    }

    std::size_t width() const noexcept {
        std::size_t sum = 0;
        for (const std::size_t at : shown_) sum += widths_[at] + column_gap;
        return sum - std::min(sum, column_gap);
    }

    /// True where a column was left out.
    bool leave_one_out() {
        const auto rank = [this](std::size_t at) { return columns_[at].rank; };
        const auto least = std::ranges::max_element(shown_, {}, rank);
        if (least == shown_.end() || rank(*least) == 0) return false;
        shown_.erase(least);
        return true;
    }

    /// Shortens the texts of the column that may be, by `excess` characters.
    void shorten(std::size_t excess) {
        const auto name = std::ranges::find_if(
            shown_, [this](std::size_t at) { return columns_[at].may_shorten; });
        if (name == shown_.end()) return;
        std::size_t widest = 0;
        for (const auto& row : rows_) widest = std::max(widest, row[*name].text.size());
        const std::size_t longest = std::max(widest - std::min(excess, widest), shortest_text);
        for (auto& row : rows_) {
            std::string& text = row[*name].text;
            if (text.size() > longest)
                text = printable(text.substr(0, longest - 1).append(ellipsis));
        }
        widths_[*name] = width_at(*name);
    }

    std::string to_string(bool colours) const {
        constexpr std::size_t escapes = 32;
        std::string text;
        text.reserve((rows_.size() + 1) * (width() + escapes));
        for (const std::size_t at : shown_)
            append(text, at, columns_[at].header, tint::bold, colours);
        for (const auto& row : rows_)
            for (const std::size_t at : shown_)
                append(text, at, row[at].text, row[at].colour, colours);
        return text;
    }

private:
    std::size_t width_at(std::size_t column) const {
        std::size_t width = width_of(columns_[column].header);
        for (const auto& row : rows_) width = std::max(width, width_of(row[column].text));
        return width;
    }

    void append(std::string& to, std::size_t column, std::string_view text, tint colour,
                bool colours) const {
        const bool is_tinted = colours && colour != tint::none;
        if (is_tinted) to += escape_of(colour);
        to += text;
        if (is_tinted) to += "\x1b[0m";
        if (column == shown_.back())
            to += '\n';
        else
            to.append(widths_[column] - width_of(text) + column_gap, ' ');
    }

    const std::vector<fitted_column>& columns_;
    std::vector<std::vector<cell>>& rows_;
    std::vector<std::size_t> widths_;
    std::vector<std::size_t> shown_;
};

}  // namespace

std::string fitted_table(std::vector<fitted_column> columns, std::vector<std::vector<cell>> rows,
                         std::size_t width, bool colours) {
    fitting shown(columns, rows);
    if (width == 0) return shown.to_string(colours);
    while (shown.width() > width && shown.leave_one_out()) {
    }
    if (shown.width() > width) shown.shorten(shown.width() - width);
    return shown.to_string(colours);
}

std::string format_time(double microseconds) {
    if (microseconds < 1000) return fmt::format("{:.1f} µs", microseconds);
    if (microseconds < 1e6) return fmt::format("{:.1f} ms", microseconds / 1e3);
    return fmt::format("{:.1f} s", microseconds / 1e6);
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
