// Order, pages, escaping and layout of listings.
#include "http/files/folder_listing.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/wire/http1/target.hpp>

#include "http/fields/http_date.hpp"
#include "http/html.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <compare>
#include <span>
#include <utility>

namespace eddy::http {
namespace {

// The system's light or dark theme. Names are broken where they must, sizes and times are not.
constexpr std::string_view style =
    "<meta name=\"viewport\" content=\"width=device-width\">\n"
    "<style>:root{color-scheme:light dark}body{font-family:sans-serif;margin:2em}"
    "h1,td:first-child{overflow-wrap:anywhere}th{text-align:left}"
    "td,th{padding:.1em 1.5em .1em 0}td+td,th+th{text-align:right;"
    "white-space:nowrap;font-variant-numeric:tabular-nums}"
    "@media(max-width:36em){body{margin:1em;font-size:.85em}td,th{padding-right:.8em}}</style>\n";

struct column {
    listing_column which;
    std::string_view parameter;
    std::string_view title;
    bool begins_descending;  // the largest and the newest are asked for first
};
constexpr column columns[] = {{listing_column::name, "name", "Name", false},
                              {listing_column::size, "size", "Size", true},
                              {listing_column::time, "time", "Changed (UTC)", true}};

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

unsigned char folded(char c) noexcept {
    return static_cast<unsigned char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

/// Takes a number's digits from the beginning, without its leading zeros.
std::string_view take_number(std::string_view& from) noexcept {
    std::string_view digits =
        from.substr(0, std::min(from.find_first_not_of("0123456789"), from.size()));
    from.remove_prefix(digits.size());
    digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
    return digits;
}

int sign_of(std::strong_ordering order) noexcept { return order < 0 ? -1 : order > 0 ? 1 : 0; }

void append_padded(std::string& to, unsigned number, std::size_t width) {
    const std::string digits = std::to_string(number);
    if (digits.size() < width) to.append(width - digits.size(), '0');
    to += digits;
}

/// "1994-11-06 08:49"; empty beyond the years of dates.
std::string time_text(std::int64_t seconds) {
    if (seconds < earliest_http_date || seconds > latest_http_date) return {};
    const std::chrono::sys_seconds at{std::chrono::seconds(seconds)};
    const auto day = std::chrono::floor<std::chrono::days>(at);
    const std::chrono::year_month_day date(day);
    const std::chrono::hh_mm_ss time(at - day);
    std::string text;
    append_padded(text, static_cast<unsigned>(static_cast<int>(date.year())), 4);
    text += '-';
    append_padded(text, static_cast<unsigned>(date.month()), 2);
    text += '-';
    append_padded(text, static_cast<unsigned>(date.day()), 2);
    text += ' ';
    append_padded(text, static_cast<unsigned>(time.hours().count()), 2);
    text += ':';
    append_padded(text, static_cast<unsigned>(time.minutes().count()), 2);
    return text;
}

/// "1,234"
std::string count_text(std::size_t number) {
    std::string text = std::to_string(number);
    for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, 1, ',');
    return text;
}

/// The order of a listing.
class entry_order {
public:
    explicit entry_order(const listing_view& view) noexcept : view_(view) {}

    bool operator()(const folder_entry& a, const folder_entry& b) const noexcept {
        const bool is_folder = a.status.is_folder();
        if (is_folder != b.status.is_folder()) return is_folder;
        if (const int order = by_column(a, b); order != 0)
            return view_.is_descending ? order > 0 : order < 0;
        return compare_naturally(a.name, b.name) < 0;
    }

private:
    int by_column(const folder_entry& a, const folder_entry& b) const noexcept {
        switch (view_.sorted_by) {
            case listing_column::name: return compare_naturally(a.name, b.name);
            case listing_column::size:
                // A folder's own size is not that of its content.
                return a.status.is_folder() ? 0 : sign_of(a.status.size <=> b.status.size);
            case listing_column::time: break;
        }
        const int seconds = sign_of(a.status.modified_seconds <=> b.status.modified_seconds);
        return seconds != 0
                   ? seconds
                   : sign_of(a.status.modified_nanoseconds <=> b.status.modified_nanoseconds);
    }

    listing_view view_;
};

/// Relative reference to another part of the listing.
std::string reference_to(const listing_view& view) {
    const auto* const of = std::ranges::find(columns, view.sorted_by, &column::which);
    EDDY_ASSERT(of != std::end(columns));
    std::string text = "?sort=";
    text += of->parameter;
    text += view.is_descending ? "&amp;order=desc" : "&amp;order=asc";
    if (view.page > 1) text += "&amp;page=" + std::to_string(view.page);
    return text;
}

void append_link(std::string& page, std::string_view attributes, const listing_view& to,
                 std::string_view text) {
    page += "<a ";
    page += attributes;
    page += "href=\"";
    page += reference_to(to);
    page += "\">";
    page += text;
    page += "</a>";
}

void append_titles(std::string& page, const listing_view& view) {
    page += "<tr>";
    for (const column& each : columns) {
        listing_view next;
        next.sorted_by = each.which;
        next.is_descending = each.begins_descending;
        const bool is_current = each.which == view.sorted_by;
        if (is_current) next.is_descending = !view.is_descending;
        page += !is_current          ? "<th>"
                : view.is_descending ? "<th aria-sort=\"descending\">"
                                     : "<th aria-sort=\"ascending\">";
        append_link(page, "", next, each.title);
        if (is_current) page += view.is_descending ? " &darr;" : " &uarr;";
        page += "</th>";
    }
    page += "</tr>\n";
}

void append_row(std::string& page, const folder_entry& each) {
    const bool is_folder = each.status.is_folder();
    const std::string_view slash = is_folder ? "/" : "";
    page += "<tr><td><a href=\"";
    page += http1::percent_encode(each.name);
    page += slash;
    page += "\">";
    page += escape_html(each.name);
    page += slash;
    page += "</a></td><td";
    if (!is_folder) {
        page += " title=\"" + count_text(each.status.size) + " bytes\">";
        page += size_text(each.status.size);
    } else {
        page += '>';
    }
    page += "</td><td>";
    page += time_text(each.status.modified_seconds);
    page += "</td></tr>\n";
}

void append_pages(std::string& page, const listing_view& view, std::size_t first, std::size_t count,
                  std::size_t all) {
    page += "<p>" + count_text(first + 1) + " to " + count_text(first + count) + " of " +
            count_text(all) + " entries.";
    listing_view other = view;
    if (view.page > 1) {
        other.page = view.page - 1;
        page += ' ';
        append_link(page, "rel=\"prev\" ", other, "Previous page");
    }
    if (first + count < all) {
        other.page = view.page + 1;
        page += ' ';
        append_link(page, "rel=\"next\" ", other, "Next page");
    }
    page += "</p>\n";
}

}  // namespace

listing_view listing_view::from(std::optional<std::string_view> sort,
                                std::optional<std::string_view> order,
                                std::optional<std::string_view> page) noexcept {
    listing_view made;
    const auto* const by = std::ranges::find(columns, sort.value_or("name"), &column::parameter);
    if (by != std::end(columns)) made.sorted_by = by->which;
    made.is_descending = order == "desc";
    const std::string_view digits = page.value_or("1");
    std::size_t number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error == std::errc() && end == digits.data() + digits.size() && number > 0)
        made.page = number;
    return made;
}

int compare_naturally(std::string_view a, std::string_view b) noexcept {
    const std::string_view whole_a = a;
    const std::string_view whole_b = b;
    while (!a.empty() && !b.empty()) {
        if (is_digit(a.front()) && is_digit(b.front())) {
            const std::string_view first = take_number(a);
            const std::string_view second = take_number(b);
            if (first.size() != second.size()) return first.size() < second.size() ? -1 : 1;
            if (const int order = first.compare(second); order != 0) return order;
            continue;
        }
        const unsigned char first = folded(a.front());
        const unsigned char second = folded(b.front());
        if (first != second) return first < second ? -1 : 1;
        a.remove_prefix(1);
        b.remove_prefix(1);
    }
    if (a.empty() != b.empty()) return a.empty() ? -1 : 1;
    return whole_a.compare(whole_b);
}

std::string size_text(std::uint64_t bytes) {
    constexpr std::string_view units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (bytes < 1024) return std::to_string(bytes) + " B";
    std::size_t unit = 0;
    while (bytes >= std::uint64_t{1024} * 1024) {
        bytes /= 1024;
        ++unit;
    }
    std::uint64_t tenths = (bytes * 10 + 512) / 1024;
    if (tenths >= 10240 && unit + 1 < std::size(units)) {
        tenths = 10;
        ++unit;
    }
    return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " " +
           std::string(units[unit]);
}

std::string list_folder(std::string_view path, folder_list list, const listing_view& view) {
    EDDY_PRECONDITION(list.page_size > 0, "a listing's page has at least one entry");
    std::ranges::sort(list.entries, entry_order(view));
    const std::size_t all = list.entries.size();
    const std::size_t pages = std::max<std::size_t>((all + list.page_size - 1) / list.page_size, 1);
    listing_view shown = view;
    shown.page = std::clamp<std::size_t>(view.page, 1, pages);
    const std::size_t first = (shown.page - 1) * list.page_size;
    const std::size_t count = std::min(list.page_size, all - first);
    const std::string title = "Index of /" + escape_html(path) + (path.empty() ? "" : "/");
    std::string page = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>";
    page += title;
    page += "</title>\n";
    page += style;
    page += "</head><body><h1>";
    page += title;
    page += "</h1>\n<table>\n";
    append_titles(page, shown);
    if (!path.empty()) page += "<tr><td><a href=\"../\">../</a></td><td></td><td></td></tr>\n";
    for (const folder_entry& each : std::span(list.entries).subspan(first, count))
        append_row(page, each);
    page += "</table>\n";
    if (pages > 1) append_pages(page, shown, first, count, all);
    if (list.is_cut)
        page += "<p>The folder has more entries; these are the first " + count_text(all) +
                " that the system named.</p>\n";
    page += "</body></html>\n";
    return page;
}

}  // namespace eddy::http
