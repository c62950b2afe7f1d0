// Columns of text, for people to read.
#pragma once

#include "base/text/terminal_text.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cli {

/// Tint of a cell on a terminal.
enum class tint { none, bold, green, yellow, red, faint };

struct cell {
    std::string text;
    tint colour = tint::none;
};

/// A table whose columns are as wide as their widest cell. Text counts by characters of UTF-8, and
/// what printable() replaces is shown as '?', so that no name can drive the terminal.
class table {
public:
    explicit table(std::vector<std::string> header) : header_(std::move(header)) {}

    void add(std::vector<cell> row);
    std::size_t rows() const noexcept { return rows_.size(); }

    /// Characters of the widest line.
    std::size_t width() const;

    /// Header and rows, each ending in a newline, with no spaces at the end of a line.
    std::string to_string(bool colours) const;

private:
    static constexpr std::size_t gap = 2;
    std::vector<std::size_t> widths() const;

    std::vector<std::string> header_;
    std::vector<std::vector<cell>> rows_;
};

/// A column of a table that fits a terminal. Columns of `rank` 0 are always there; of the others
/// the highest rank is left out first.
struct fitted_column {
    std::string_view header;
    int rank = 0;
    bool may_shorten = false;  ///< texts are shortened where that alone helps
};

/// Such a table, at most `width` characters wide where possible; 0: of any width. A cell without a
/// text shows "-".
std::string fitted_table(std::vector<fitted_column> columns, std::vector<std::vector<cell>> rows,
                         std::size_t width, bool colours);

/// Wraps a text in the escape sequences of its tint, when `colours`.
std::string tinted(std::string_view text, tint colour, bool colours);

/// "3s", "12m 5s", "7h 30m", "12d 4h".
std::string format_age(double seconds);
/// "512 B", "1.2 KiB", "34 MiB".
std::string format_bytes(double bytes);
/// Microseconds as "36.6 µs", "9.1 ms", "1.2 s".
std::string format_time(double microseconds);
/// "1234567" as "1,234,567".
std::string format_count(double count);

}  // namespace eddy::cli
