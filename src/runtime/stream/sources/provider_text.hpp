// Texts of a source about its failures, made fit for the journal: bounded, without control
// characters, and without this side's keys, which some APIs repeat in their messages.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime::stream {

/// Bytes of a provider's text in a line of the journal, at most; then comes "...".
inline constexpr std::size_t max_shown_text = 400;

/// The member `error` of a response or event; null for none, and for one that says there is none.
const nlohmann::ordered_json* find_error(const nlohmann::ordered_json& in);
/// The message of an error in JSON, with its type or code, wherever APIs have it; otherwise the
/// whole of it.
std::string error_text(const nlohmann::ordered_json& from);
/// True when the content of a response is such an error in JSON.
bool reports_error(std::string_view content);
/// The text of an error for the content of a response, which may be no JSON.
std::string error_text_of(std::string_view content);

/// Texts that must not be in the journal.
class secret_texts {
public:
    /// The key, and what of the URL may be secret: its user's name and password and the values in
    /// its query, as they are written in the URL and percent-decoded.
    secret_texts(std::string_view key, std::string_view url) { include(key, url); }
    /// Adds the same of another backend.
    void include(std::string_view key, std::string_view url);

    /// The text with "***" for each secret, and for the beginning of one at its end: of 4 bytes at
    /// least, or of any size in a text that was cut off.
    std::string hide(std::string_view text, bool is_cut_off = false) const;

private:
    void add(std::string_view secret);
    void add_encoded(std::string_view secret);
    std::vector<std::string> all_;
};

/// A text from hide() as a part of a line: at most max_shown_text bytes, and `\xNN` for what could
/// drive a terminal or forge a line.
std::string shown(std::string_view text);

}  // namespace eddy::runtime::stream
