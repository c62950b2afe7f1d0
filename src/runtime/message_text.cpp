// Cutting and escaping messages for the journal.
#include "runtime/message_text.hpp"

#include <fmt/format.h>

namespace eddy::runtime {

std::string shown_message(std::string_view message) {
    if (message.ends_with('\n')) message.remove_suffix(1);
    if (message.ends_with('\r')) message.remove_suffix(1);
    std::string shown;
    for (const char byte : message.substr(0, max_shown_message)) {
        const auto code = static_cast<unsigned char>(byte);
        if (code >= 0x20 && code != 0x7f)
            shown += byte;
        else if (byte == '\t')
            shown += "\\t";
        else
            shown += fmt::format("\\x{:02x}", code);
    }
    if (message.size() > max_shown_message) shown += fmt::format("... ({} bytes)", message.size());
    return shown;
}

void journal_messages(journal& to, std::uint64_t client, std::string_view messages, bool lines) {
    while (!messages.empty()) {
        const std::size_t end = lines ? messages.find('\n') : std::string_view::npos;
        const std::string_view one = messages.substr(0, end);
        to.write(fmt::format("client {}: {}", client, shown_message(one)));
        messages.remove_prefix(end == std::string_view::npos ? messages.size() : end + 1);
    }
}

}  // namespace eddy::runtime
