// --filter KEY=VALUE of lists and events.
#pragma once

#include "cli/request.hpp"
#include "cli/text/list_rows.hpp"

#include <cstddef>
#include <expected>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cli {

/// Values by key: a row has to have one of each key's.
class filters {
public:
    /// The values of all flags --filter, each KEY=VALUE, where commas separate values. The error is
    /// a sentence.
    static std::expected<filters, std::string> parse(const arguments& given,
                                                     std::span<const std::string_view> keys);

    /// True for a row that has one of each key's values; those of the key "name" may be patterns.
    bool has(const json& row) const;
    bool has(const list_rows& rows, std::size_t row) const;
    const std::map<std::string, std::vector<std::string>, std::less<>>& by_key() const noexcept {
        return by_key_;
    }

private:
    template <class F>
    bool has_value_of(F text_of_key) const;

    std::map<std::string, std::vector<std::string>, std::less<>> by_key_;
};

}  // namespace eddy::cli
