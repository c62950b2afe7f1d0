// Answers made of pages.
#include "proxy/http/error_pages.hpp"

#include <eddy/base/assert.hpp>

#include <utility>

namespace eddy::proxy {
namespace {

/// A session queues a text of so many bytes with the responses of a pipeline; larger pages are sent
/// from their one copy, however many clients get them at a time.
constexpr std::size_t copied_page = std::size_t{16} * 1024;

}  // namespace

std::optional<http::response> error_pages::answer(int status) const {
    const auto found = by_status_.find(status);
    if (found == by_status_.end()) return std::nullopt;
    const std::shared_ptr<const error_page>& page = found->second;
    EDDY_ASSERT(page && page->content.size() <= max_error_page);
    if (page->content.size() <= copied_page)
        return http::response(status, page->type, http::body(page->content));
    return http::response(
        status, page->type,
        http::body::streamed([page](http::body_writer& to) { return to.write(page->content); },
                             page->content.size()));
}

}  // namespace eddy::proxy
