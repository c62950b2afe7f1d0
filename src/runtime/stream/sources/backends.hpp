// Backends of a relay source: URLs that it requests, each with a key and a model, and the order in
// which a handoff has them tried.
#pragma once

#include "base/problem.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime::stream {

/// Backends beside --source-url at most.
inline constexpr std::size_t max_named_backends = 16;
/// Bytes of a backend's name at most.
inline constexpr std::size_t max_backend_name = 64;
/// Name of the backend at --source-url.
inline constexpr std::string_view first_backend = "default";

struct backend {
    std::string name = std::string(first_backend);
    std::string url;
    std::string socket;     ///< path of a Unix socket to connect to in place of the URL's host
    std::string key;        ///< empty: none
    std::string key_field;  ///< field of the request that has the key; empty: Authorization
    std::string model;      ///< for requests that name none; empty: the source's

    friend bool operator==(const backend&, const backend&) = default;
};

/// The key in a file: one line. `option` is the flag that the refusal names.
outcome<std::string> read_key(std::string_view option, const std::string& path);
/// Refuses what is no URL of http or https, and one with spaces or control characters.
outcome<> check_url(std::string_view option, std::string_view url);
/// Refuses what cannot be the field of a key.
outcome<> check_key_field(std::string_view option, std::string_view name);
/// A backend of "NAME=URL [key-file=FILE] [key-field=NAME] [model=NAME]", with its key. The refusal
/// shows no secret of the URL.
outcome<backend> read_backend(std::string_view option, std::string_view text);
/// The same without the secrets that its URL may have, for users.
std::string shown_backend(const std::string& text);

/// A URL with `path` behind its own path, before its query; slashes at the end of its path are
/// dropped where one is added.
std::string url_below(std::string_view url, std::string_view path);

/// Backends of a source, the one at --source-url first. Immutable.
class backend_list {
public:
    /// Not empty.
    explicit backend_list(std::vector<backend> all);

    /// The one backend; null where there are several.
    const backend* only() const noexcept { return all_.size() == 1 ? &all_.front() : nullptr; }
    /// Backends to try, in this order, for a handoff's member `backend`: names with commas between
    /// them, or nothing for all. Empty for an unknown name. With one backend the member has no
    /// effect.
    std::vector<const backend*> order(std::string_view names) const;
    const std::vector<backend>& all() const noexcept { return all_; }

private:
    std::vector<backend> all_;
};

}  // namespace eddy::runtime::stream
