// Texts of sources about their failures.
#include "runtime/stream/sources/provider_text.hpp"

#include <eddy/wire/http1/target.hpp>
#include <eddy/wire/json.hpp>

#include "base/text/base64.hpp"
#include "base/text/terminal_text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace eddy::runtime::stream {
namespace {

using value = nlohmann::ordered_json;

constexpr std::string_view hidden = "***";
/// Bytes of a secret's beginning that is hidden at the end of each text, and of a user's name that
/// is hidden alone.
constexpr std::size_t min_hidden_part = 4;
/// Limits of an error's JSON; one above them is shown as it came. The parser's time is quadratic in
/// the number of members.
constexpr json_shape max_shape = {.depth = 64, .members = 4096};

std::string text_of(const value& from) {
    if (from.is_string()) return from.get<std::string>();
    return from.dump(-1, ' ', false, value::error_handler_t::replace);
}

/// The first of an object's members of these names that is a text or a number; null for none.
const value* first_of(const value& in, std::initializer_list<const char*> names) {
    for (const char* const name : names) {
        const auto found = in.find(name);
        if (found != in.end() && (found->is_number() || found->is_string())) return &*found;
    }
    return nullptr;
}

void replace_all(std::string& in, std::string_view what) {
    for (std::size_t at = in.find(what); at != std::string::npos;
         at = in.find(what, at + hidden.size()))
        in.replace(at, what.size(), hidden);
}

/// Discarded for what is no JSON, or above a limit.
value parse(std::string_view content) {
    if (excess_of(content, max_shape) != json_excess::none) return value(value::value_t::discarded);
    return value::parse(content, nullptr, false);
}

}  // namespace

const value* find_error(const value& in) {
    const auto found = in.find("error");
    if (found == in.end() || found->is_null() || *found == false || *found == "") return nullptr;
    return &*found;
}

std::string error_text(const value& from) {
    if (!from.is_object()) return text_of(from);
    const value* const error = find_error(from);
    if (error != nullptr && !error->is_object()) return text_of(*error);
    const value& its = error != nullptr ? *error : from;
    const value* const message = first_of(its, {"message", "detail", "error_message"});
    if (message == nullptr) return text_of(from);
    const value* const kind = first_of(its, {"code", "type"});
    if (kind == nullptr) return text_of(*message);
    return fmt::format("{} ({})", text_of(*message), text_of(*kind));
}

bool reports_error(std::string_view content) {
    const value parsed = parse(content);
    return parsed.is_object() && find_error(parsed) != nullptr;
}

std::string error_text_of(std::string_view content) {
    const value parsed = parse(content);
    return parsed.is_discarded() ? std::string(content) : error_text(parsed);
}

void secret_texts::include(std::string_view key, std::string_view url) {
    add(key);
    const std::size_t scheme = url.find("://");
    if (scheme == std::string_view::npos) return;
    url.remove_prefix(scheme + 3);
    const std::string_view authority = url.substr(0, url.find_first_of("/?#"));
    if (const std::size_t at = authority.rfind('@'); at != std::string_view::npos) {
        const std::string_view user = authority.substr(0, at);
        add_encoded(user);
        add(base64(user));
        if (const auto decoded = http1::percent_decode(user)) add(base64(*decoded));
        if (const std::size_t colon = user.find(':'); colon != std::string_view::npos) {
            // Some APIs take a key as the name. A shorter name may be a part of any word.
            if (colon >= min_hidden_part) add_encoded(user.substr(0, colon));
            add_encoded(user.substr(colon + 1));
        }
    }
    const std::size_t query = url.find('?');
    if (query == std::string_view::npos) return;
    std::string_view rest = url.substr(query + 1);
    while (!rest.empty()) {
        const std::string_view pair = rest.substr(0, rest.find('&'));
        rest.remove_prefix(std::min(rest.size(), pair.size() + 1));
        if (const std::size_t equals = pair.find('='); equals != std::string_view::npos)
            add_encoded(pair.substr(equals + 1));
    }
}

void secret_texts::add_encoded(std::string_view secret) {
    add(secret);
    const auto decoded = http1::percent_decode(secret);
    if (decoded && *decoded != secret) add(*decoded);
}

void secret_texts::add(std::string_view secret) {
    if (secret.empty()) return;
    all_.emplace_back(secret);
    // As it stands within a text of JSON that is shown whole.
    json_writer quoted;
    quoted.value(secret);
    const std::string escaped = quoted.take();
    if (escaped.size() > secret.size() + 2) all_.push_back(escaped.substr(1, escaped.size() - 2));
    // The longest first, so that no part of one is left.
    std::ranges::sort(all_, std::ranges::greater(), &std::string::size);
}

std::string secret_texts::hide(std::string_view text, bool is_cut_off) const {
    std::string made(text);
    for (const std::string& each : all_) replace_all(made, each);
    // Some APIs cut their texts themselves. What is shorter may well be another word.
    const std::size_t least = is_cut_off ? 1 : min_hidden_part;
    std::size_t begun = least - 1;
    for (const std::string& each : all_)
        for (std::size_t size = std::min(each.size() - 1, made.size()); size > begun; --size)
            if (made.ends_with(std::string_view(each).substr(0, size))) begun = size;
    if (begun < least) return made;
    made.resize(made.size() - begun);
    return made += hidden;
}

std::string shown(std::string_view text) {
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ' || text.back() == '\r'))
        text.remove_suffix(1);
    std::string line;
    while (!text.empty()) {
        const text_unit unit = first_unit(text);
        const std::string_view bytes = text.substr(0, unit.size);
        if (line.size() + 4 * bytes.size() > max_shown_text) return line += "...";
        if (unit.is_printable)
            line += bytes;
        else
            append_hex_escaped(line, bytes);
        text.remove_prefix(unit.size);
    }
    return line;
}

}  // namespace eddy::runtime::stream
