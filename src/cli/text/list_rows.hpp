// Rows of runtimes with chosen fields, as the daemon answers a list with `fields`. All texts are in
// one string: ten thousand rows take a few allocations.
#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cli {

using nlohmann::json;

class list_rows {
public:
    /// Column of a field that there is not: its texts are empty.
    static constexpr std::size_t absent = SIZE_MAX;

    /// Reads {"fields": [...], "rows": [[...]...]}, where values are texts, numbers, truths or
    /// null; null is an empty text. None for anything else.
    static std::optional<list_rows> parse(std::string_view answer);
    /// The same of a list of objects, with these of their fields.
    static list_rows of(const json& list, std::span<const std::string_view> fields);

    std::size_t size() const noexcept {
        return fields_.empty() ? 0 : cells_.size() / fields_.size();
    }
    std::size_t column(std::string_view field) const noexcept;
    /// Valid as long as these rows.
    std::string_view at(std::size_t row, std::size_t column) const noexcept {
        if (column == absent) return {};
        const place& from = cells_[row * fields_.size() + column];
        return std::string_view(text_).substr(from.at, from.size);
    }
    /// Drops the rows, by their numbers, for which `keeps` is false.
    template <class F>
    void filter(const F& keeps) {
        std::size_t kept = 0;
        for (std::size_t row = 0, all = size(); row < all; ++row) {
            if (!keeps(row)) continue;
            for (std::size_t at = 0; at < fields_.size(); ++at)
                cells_[kept * fields_.size() + at] = cells_[row * fields_.size() + at];
            ++kept;
        }
        cells_.resize(kept * fields_.size());
    }

private:
    struct reader;
    class plain_reader;
    struct place {
        std::uint32_t at;
        std::uint32_t size;
    };

    void add(std::string_view text) {
        cells_.push_back(
            {static_cast<std::uint32_t>(text_.size()), static_cast<std::uint32_t>(text.size())});
        text_ += text;
    }

    std::vector<std::string> fields_;
    std::string text_;
    std::vector<place> cells_;
};

}  // namespace eddy::cli
