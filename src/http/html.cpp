// Escaping of text for HTML.
#include "http/html.hpp"

namespace eddy::http {

void append_escaped_html(std::string& to, std::string_view text) {
    for (const char c : text) {
        switch (c) {
            case '&': to += "&amp;"; break;
            case '<': to += "&lt;"; break;
            case '>': to += "&gt;"; break;
            case '"': to += "&quot;"; break;
            case '\'': to += "&#39;"; break;
            default: to += c;
        }
    }
}

std::string escape_html(std::string_view text) {
    std::string made;
    made.reserve(text.size());
    append_escaped_html(made, text);
    return made;
}

}  // namespace eddy::http
