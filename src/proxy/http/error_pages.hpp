// Error pages: the content of files as a proxy's own answers, by their status.
#pragma once

#include <eddy/http/response.hpp>

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace eddy::proxy {

/// Largest content of a page.
inline constexpr std::size_t max_error_page = std::size_t{1} << 20;
/// Statuses that may have one: 400 to 599.
inline constexpr int first_error_status = 400;
inline constexpr int last_error_status = 599;

/// Content of a file.
struct error_page {
    std::string type;     ///< Content-Type
    std::string content;  ///< at most max_error_page bytes
};

/// The pages in force, constant once they are shared. Any thread.
class error_pages {
public:
    /// Replaces the page of a status.
    void set(int status, std::shared_ptr<const error_page> page) {
        by_status_[status] = std::move(page);
    }
    /// The answer of that status; none where it has no page. A large page is not copied.
    std::optional<http::response> answer(int status) const;

private:
    std::map<int, std::shared_ptr<const error_page>> by_status_;
};

}  // namespace eddy::proxy
