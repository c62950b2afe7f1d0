// Page that lists the entries of a folder: sorted, in pages, with sizes and times for readers.
#pragma once

#include <eddy/io/file.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::http {

/// Column that a listing is sorted by.
enum class listing_column : std::uint8_t { name, size, time };

/// The part of a listing that a request asks for.
struct listing_view {
    listing_column sorted_by = listing_column::name;
    bool is_descending = false;
    std::size_t page = 1;

    /// From the values of the query parameters `sort` (name, size or time), `order` (asc or desc)
    /// and `page`. Others count as absent: the list is sorted by name, ascending, from page 1. Any
    /// thread.
    static listing_view from(std::optional<std::string_view> sort,
                             std::optional<std::string_view> order,
                             std::optional<std::string_view> page) noexcept;
};

/// Entries of a folder, and how they are shown.
struct folder_list {
    std::vector<folder_entry> entries;
    bool is_cut = false;          ///< there are more, which the page says
    std::size_t page_size = 100;  ///< entries of a page, at least 1
};

/// HTML of the page of `list` that `view` asks for, or of the last one. Folders are first; names
/// are in natural order (a2 before a10, the case of ASCII letters ignored), and so are entries of
/// one size or time. Times are in UTC. Links are relative to the folder. `path` is the folder's,
/// decoded and without slashes at its ends; empty for the root, which has no link upwards. Any
/// thread.
std::string list_folder(std::string_view path, folder_list list, const listing_view& view);

/// Natural order of names: less than 0 if `a` comes before `b`, 0 for equal ones alone. Digits
/// compare as numbers, letters of ASCII without their case; bytes decide what is left. Any thread.
int compare_naturally(std::string_view a, std::string_view b) noexcept;

/// "1.5 KiB", "12 B": at most one decimal. Any thread.
std::string size_text(std::uint64_t bytes);

}  // namespace eddy::http
