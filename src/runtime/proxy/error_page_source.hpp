// Error page source: a file as an option names it, and the statuses that it answers.
#pragma once

#include "base/problem.hpp"
#include "proxy/http/error_pages.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime::proxy {

/// Files of a proxy at most.
inline constexpr std::size_t max_error_pages = 32;

struct error_page_source {
    std::vector<int> statuses;
    std::string path;

    friend bool operator==(const error_page_source&, const error_page_source&) = default;
};

/// Reads "CODES=FILE" of each text, such as "502,503=/srv/down.html". The refusal says what is
/// wrong; a status may have one file.
outcome<std::vector<error_page_source>> read_error_page_sources(
    const std::vector<std::string>& texts);

/// The pages with the content that the files have now; null without sources. A refusal names the
/// file that cannot be read, or is larger than max_error_page. It waits for the disk.
outcome<std::shared_ptr<const eddy::proxy::error_pages>> load_error_pages(
    const std::vector<error_page_source>& all);

}  // namespace eddy::runtime::proxy
