// Escaping of text for HTML.
#pragma once

#include <string>
#include <string_view>

namespace eddy::http {

/// Appends the text with & < > " ' as entities. Any thread.
void append_escaped_html(std::string& to, std::string_view text);

/// The text with & < > " ' as entities. Any thread.
std::string escape_html(std::string_view text);

}  // namespace eddy::http
