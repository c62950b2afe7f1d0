// Escaping and layout of listings.
#include "http/files/folder_listing.hpp"

#include <eddy/wire/http1/target.hpp>

#include "http/fields/http_date.hpp"
#include "http/html.hpp"

#include <algorithm>
#include <tuple>

namespace eddy::http {
namespace {

constexpr std::string_view style =
    "<style>body{font-family:sans-serif;margin:2em}td{padding:.1em 1.5em .1em 0}"
    "td+td{text-align:right;font-variant-numeric:tabular-nums}</style>\n";

void append_row(std::string& page, const folder_entry& each, http_date_writer& dates) {
    const bool is_folder = each.status.is_folder();
    const std::string_view slash = is_folder ? "/" : "";
    page += "<tr><td><a href=\"";
    page += http1::percent_encode(each.name);
    page += slash;
    page += "\">";
    page += escape_html(each.name);
    page += slash;
    page += "</a></td><td>";
    if (!is_folder) page += std::to_string(each.status.size);
    page += "</td><td>";
    page += dates.write(each.status.modified_seconds);
    page += "</td></tr>\n";
}

}  // namespace

std::string list_folder(std::string_view path, std::vector<folder_entry> entries, bool is_cut) {
    std::ranges::sort(entries, [](const folder_entry& a, const folder_entry& b) {
        const bool a_is_file = !a.status.is_folder();
        const bool b_is_file = !b.status.is_folder();
        return std::tie(a_is_file, a.name) < std::tie(b_is_file, b.name);
    });
    const std::string title = "Index of /" + escape_html(path) + (path.empty() ? "" : "/");
    std::string page = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>";
    page += title;
    page += "</title>\n";
    page += style;
    page += "</head><body><h1>";
    page += title;
    page += "</h1>\n<table>\n";
    if (!path.empty()) page += "<tr><td><a href=\"../\">../</a></td><td></td><td></td></tr>\n";
    http_date_writer dates;
    for (const folder_entry& each : entries) append_row(page, each, dates);
    page += "</table>\n";
    if (is_cut)
        page += "<p>The first " + std::to_string(entries.size()) +
                " entries that the system named; there are more.</p>\n";
    page += "</body></html>\n";
    return page;
}

}  // namespace eddy::http
