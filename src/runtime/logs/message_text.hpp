// Messages as the journal shows them.
#pragma once

#include "serving/journal.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace eddy::runtime {

/// Bytes of a message that the journal shows.
inline constexpr std::size_t max_shown_message = 512;

/// The message without its line end, cut after max_shown_message bytes, with what is not printable
/// escaped.
std::string shown_message(std::string_view message);

/// Writes "client 7: text" for each message; `lines` says whether they are lines or one piece.
void journal_messages(serving::journal& to, std::uint64_t client, std::string_view messages,
                      bool lines);

}  // namespace eddy::runtime
