// WebSocket client of the pages that a server serves (--http-inject): a script with a URL of its
// own, as Content-Security-Policy wants it, and the tag that loads it.
#pragma once

#include <eddy/http/request.hpp>
#include <eddy/http/response.hpp>

#include <string_view>

namespace eddy::runtime::server {

/// Path of the script; a file of the folder with that path is not reachable.
inline constexpr std::string_view page_client_path = "/_eddy/eddy-client.js";
/// The text that goes into HTML pages.
inline constexpr std::string_view page_client_tag =
    "<script src=\"/_eddy/eddy-client.js\"></script>\n";

/// The response to a request for the script. Any thread.
eddy::http::response serve_page_client(const eddy::http::request& incoming);

}  // namespace eddy::runtime::server
