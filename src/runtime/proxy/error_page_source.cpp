// Reading of error pages.
#include "runtime/proxy/error_page_source.hpp"

#include <eddy/base/assert.hpp>

#include "base/files/regular_file.hpp"
#include "http/files/media_types.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <system_error>
#include <utility>

namespace eddy::runtime::proxy {
namespace {

using eddy::proxy::error_page;
using eddy::proxy::error_pages;
using eddy::proxy::max_error_page;

/// A status that an error page may have; 0 for other texts.
int read_status(std::string_view text) noexcept {
    int status = 0;
    const char* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, status);
    const bool is_error =
        status >= eddy::proxy::first_error_status && status <= eddy::proxy::last_error_status;
    return read.ec == std::errc() && read.ptr == end && is_error ? status : 0;
}

outcome<error_page_source> read_source(std::string_view text) {
    const std::size_t equals = std::min(text.find('='), text.size());
    std::string_view codes = text.substr(0, equals);
    error_page_source made;
    made.path = text.substr(std::min(equals + 1, text.size()));
    if (codes.empty() || !made.path.starts_with('/'))
        return refuse(400, fmt::format("--error-page {}: write CODES=FILE with the whole path of "
                                       "the file, such as 502,503=/srv/down.html",
                                       text));
    for (;;) {
        const std::size_t comma = std::min(codes.find(','), codes.size());
        const std::string_view code = codes.substr(0, comma);
        made.statuses.push_back(read_status(code));
        if (made.statuses.back() == 0)
            return refuse(
                400, fmt::format("--error-page {}: \"{}\" is no status from {} to {}", text, code,
                                 eddy::proxy::first_error_status, eddy::proxy::last_error_status));
        if (comma == codes.size()) return made;
        codes.remove_prefix(comma + 1);
    }
}

}  // namespace

outcome<std::vector<error_page_source>> read_error_page_sources(
    const std::vector<std::string>& texts) {
    if (texts.size() > max_error_pages)
        return refuse(400, fmt::format("there are {} options --error-page; at most {} may be",
                                       texts.size(), max_error_pages));
    std::vector<error_page_source> all;
    std::set<int> statuses;
    for (const std::string& text : texts) {
        auto read = read_source(text);
        if (!read) return std::unexpected(std::move(read.error()));
        for (const int status : read->statuses)
            if (!statuses.insert(status).second)
                return refuse(400, fmt::format("--error-page: {} has two files", status));
        all.push_back(std::move(*read));
    }
    return all;
}

outcome<std::shared_ptr<const error_pages>> load_error_pages(
    const std::vector<error_page_source>& all) {
    if (all.empty()) return std::shared_ptr<const error_pages>();
    EDDY_ASSERT(all.size() <= max_error_pages);
    auto made = std::make_shared<error_pages>();
    for (const error_page_source& each : all) {
        auto content = read_regular(each.path, max_error_page);
        if (!content)
            return refuse(400, content.error() == errc::limit_reached
                                   ? fmt::format("--error-page {}: the file has more than {} KiB",
                                                 each.path, max_error_page / 1024)
                                   : fmt::format("--error-page {}: the file cannot be read: {}",
                                                 each.path, content.error().message()));
        EDDY_ASSERT(!each.statuses.empty());
        auto page = std::make_shared<error_page>();
        page->type = eddy::http::media_type_of(each.path).name;
        page->content = std::move(*content);
        for (const int status : each.statuses) made->set(status, page);
    }
    return std::shared_ptr<const error_pages>(std::move(made));
}

}  // namespace eddy::runtime::proxy
