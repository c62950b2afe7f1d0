// The --format of lists: a text for each row, with the values of its keys, as JSON, or as a table
// of chosen columns.
#pragma once

#include "cli/request.hpp"

#include <cstddef>
#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cli {

/// A format, in one of these forms:
///
///     {name} {port}                   a text for each row; \t and \n are a tab and a newline
///     {{.Name}} {{.Port}}             the same, as Docker's templates name the keys
///     table {{.Name}}\t{{.Port}}      a table of columns with a header
///     name,port                       the same
///     json                            each row as JSON on a line
class row_format {
public:
    /// `keys` are all keys of rows; a value that a row lacks is shown empty. The error is a
    /// sentence, and names a key that is unknown.
    static std::expected<row_format, std::string> parse(std::string_view text,
                                                        std::span<const std::string_view> keys);

    /// A row as one line, with a newline; of a table without columns' widths.
    std::string line(const json& row) const;
    /// All rows; a table has a header. `colours` is that of standard output.
    std::string all(const json& rows, bool colours) const;

private:
    /// A text, and the key whose value follows it; empty for none.
    struct part {
        std::string text;
        std::string key = {};
    };
    enum class form : unsigned char { lines, table, json };

    std::expected<void, std::string> read(std::string_view text,
                                          std::span<const std::string_view> keys);
    std::vector<std::string> cells(const json& row) const;

    form form_ = form::lines;
    std::vector<std::vector<part>> columns_;  // of a table; else one
    std::vector<std::string> header_;
};

}  // namespace eddy::cli
