// Backends of a relay source.
#include "runtime/stream/sources/backends.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/wire/http1/headers.hpp>

#include "base/files/regular_file.hpp"
#include "base/text/text.hpp"
#include "http/agent/url.hpp"
#include "runtime/options/option.hpp"
#include "wire/http1/forwarding.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace eddy::runtime::stream {
namespace {

/// Bytes of a key's file at most.
constexpr std::size_t max_key = 4096;

bool is_backend_name(std::string_view name) noexcept {
    return !name.empty() && name.size() <= max_backend_name &&
           std::ranges::all_of(name, [](char c) {
               return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '.' || c == '_' || c == '-';
           });
}

/// A URL without user, query and fragment, which may be secrets.
std::string public_part(std::string_view url) {
    const std::size_t scheme = url.find("://");
    if (scheme == std::string_view::npos) return std::string(url.substr(0, url.find('?')));
    const std::size_t host = scheme + 3;
    const std::size_t end = std::min(url.find_first_of("?#", host), url.size());
    const std::string_view authority = url.substr(host, url.find_first_of("/?#", host) - host);
    const std::size_t user = authority.rfind('@');
    std::string made(url.substr(0, host));
    if (user != std::string_view::npos) made.append(hidden).append("@");
    const std::size_t from = user == std::string_view::npos ? host : host + user + 1;
    made.append(url.substr(from, end - from));
    if (end < url.size()) made.append(1, url[end]).append(hidden);
    return made;
}

outcome<> set_parameter(std::string_view option, std::string_view name, std::string_view value,
                        backend& of) {
    if (name == "model" && !value.empty()) {
        of.model = value;
        return {};
    }
    if (name == "key-field") {
        of.key_field = value;
        return check_key_field(option, value);
    }
    if (name != "key-file")
        return refuse(400, fmt::format("--{} {}: \"{}\" is none of key-file=FILE, key-field=NAME "
                                       "and model=NAME",
                                       option, of.name, name));
    if (!value.starts_with('/'))
        return refuse(
            400, fmt::format("--{} {}: write the whole path of key-file, from /", option, of.name));
    auto key = read_key(option, std::string(value));
    if (!key) return std::unexpected(std::move(key.error()));
    of.key = std::move(*key);
    return {};
}

}  // namespace

outcome<std::string> read_key(std::string_view option, const std::string& path) {
    auto key = read_regular(path, max_key);
    if (!key && key.error() != errc::limit_reached)
        return refuse(
            400, fmt::format("--{}: {} cannot be read: {}", option, path, key.error().message()));
    while (key && (key->ends_with('\n') || key->ends_with('\r') || key->ends_with(' ')))
        key->pop_back();
    if (!key || key->empty() || !http1::is_field_value(*key))
        return refuse(400, fmt::format("--{}: {} has no key in one line of at most {} bytes",
                                       option, path, max_key));
    return std::move(*key);
}

outcome<> check_url(std::string_view option, std::string_view url) {
    const bool is_plain = std::ranges::all_of(
        url, [](char c) { return static_cast<unsigned char>(c) > ' ' && c != '\x7f'; });
    if (is_plain && http::url::parse(url)) return {};
    return refuse(400, fmt::format("--{} cannot be \"{}\": write http://HOST:PORT/PATH, or the "
                                   "same with https, and spaces as %20",
                                   option, public_part(url)));
}

outcome<> check_key_field(std::string_view option, std::string_view name) {
    constexpr std::array kept = {std::string_view("host"), std::string_view("content-length"),
                                 std::string_view("content-type")};
    const bool is_usable =
        http1::is_token(name) && !http1::is_hop_by_hop(name) &&
        std::ranges::none_of(kept, [&](std::string_view each) { return is_word(name, each); });
    if (is_usable) return {};
    return refuse(400, fmt::format("--{}: no key can be in a field \"{}\"; write a name such as "
                                   "api-key",
                                   option, name));
}

outcome<backend> read_backend(std::string_view option, std::string_view text) {
    backend made;
    const std::size_t equals = std::min(text.find('='), text.size());
    made.name = text.substr(0, equals);
    if (equals == text.size() || !is_backend_name(made.name) || made.name == first_backend)
        return refuse(400, fmt::format("--{}: write NAME=URL, such as local=http://127.0.0.1:11434"
                                       "/v1; a name has at most {} letters, digits, dots, dashes "
                                       "and underscores, and \"{}\" is that of --source-url",
                                       option, max_backend_name, first_backend));
    std::string_view rest = text.substr(equals + 1);
    const auto next_word = [&] {
        const std::size_t begin = std::min(rest.find_first_not_of(' '), rest.size());
        const std::size_t end = std::min(rest.find(' ', begin), rest.size());
        const std::string_view word = rest.substr(begin, end - begin);
        rest.remove_prefix(end);
        return word;
    };
    made.url = next_word();
    if (auto good = check_url(option, made.url); !good)
        return std::unexpected(std::move(good.error()));
    for (std::string_view word = next_word(); !word.empty(); word = next_word()) {
        const std::size_t at = std::min(word.find('='), word.size());
        const std::string_view value = word.substr(std::min(at + 1, word.size()));
        if (auto set = set_parameter(option, word.substr(0, at), value, made); !set)
            return std::unexpected(std::move(set.error()));
    }
    if (!made.key_field.empty() && made.key.empty())
        return refuse(400, fmt::format("--{} {}: key-field has no effect without key-file", option,
                                       made.name));
    return made;
}

std::string shown_backend(const std::string& text) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos) return text;
    const std::size_t end = std::min(text.find(' ', equals), text.size());
    return text.substr(0, equals + 1) + public_part(text.substr(equals + 1, end - equals - 1)) +
           text.substr(end);
}

std::string url_below(std::string_view url, std::string_view path) {
    if (path.empty()) return std::string(url);
    const std::size_t end = std::min(url.find_first_of("?#"), url.size());
    std::string_view before = url.substr(0, end);
    while (before.ends_with('/')) before.remove_suffix(1);
    return std::string(before).append(path).append(url.substr(end));
}

backend_list::backend_list(std::vector<backend> all) : all_(std::move(all)) {
    EDDY_ASSERT(!all_.empty() && all_.size() <= max_named_backends + 1);
}

std::vector<const backend*> backend_list::order(std::string_view names) const {
    std::vector<const backend*> made;
    if (names.empty() || only() != nullptr) {
        for (const backend& each : all_) made.push_back(&each);
        return made;
    }
    for (bool is_last = false; !is_last;) {
        const std::size_t comma = std::min(names.find(','), names.size());
        const auto found = std::ranges::find(all_, names.substr(0, comma), &backend::name);
        if (found == all_.end()) return {};
        if (std::ranges::find(made, &*found) == made.end()) made.push_back(&*found);
        is_last = comma == names.size();
        names.remove_prefix(std::min(comma + 1, names.size()));
    }
    return made;
}

}  // namespace eddy::runtime::stream
