// Messages of the journal: cutting and escaping.
#include "runtime/logs/message_text.hpp"

#include "base/text/terminal_text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace eddy::runtime {

std::string shown_message(std::string_view message) {
    if (message.ends_with('\n')) message.remove_suffix(1);
    if (message.ends_with('\r')) message.remove_suffix(1);
    std::string shown;
    // A character that the limit cuts through is left out whole.
    for (std::size_t at = 0; at < std::min(message.size(), max_shown_message);) {
        const text_unit unit = first_unit(message.substr(at));
        if (at + unit.size > max_shown_message) break;
        const std::string_view bytes = message.substr(at, unit.size);
        if (unit.is_printable)
            shown += bytes;
        else if (bytes == "\t")
            shown += "\\t";
        else
            append_hex_escaped(shown, bytes);
        at += unit.size;
    }
    if (message.size() > max_shown_message) shown += fmt::format("... ({} bytes)", message.size());
    return shown;
}

void journal_messages(serving::journal& to, std::uint64_t client, std::string_view messages,
                      bool lines) {
    while (!messages.empty()) {
        const std::size_t end = lines ? messages.find('\n') : std::string_view::npos;
        const std::string_view one = messages.substr(0, end);
        to.write(fmt::format("client {}: {}", client, shown_message(one)));
        messages.remove_prefix(end == std::string_view::npos ? messages.size() : end + 1);
    }
}

}  // namespace eddy::runtime
