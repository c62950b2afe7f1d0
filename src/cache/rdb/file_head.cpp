// Parsing of the magic number, and messages about formats that are not read.
#include "cache/rdb/file_head.hpp"

#include <eddy/base/assert.hpp>

#include <charconv>
#include <cstdio>

namespace eddy::cache::rdb {

file_head::file_head(std::string_view magic) noexcept {
    EDDY_ASSERT(magic.size() == magic_bytes);
    family_ = magic.starts_with(magic_of_valkey) ? format_family::valkey : format_family::redis;
    const bool is_valkeys = family_ == format_family::valkey;
    const std::string_view name = is_valkeys ? magic_of_valkey : magic_of_redis;
    const std::string_view digits = magic.substr(name.size());
    const auto [at, error] = std::from_chars(digits.begin(), digits.end(), version_);
    if (!magic.starts_with(name) || error != std::errc{} || at != digits.end()) {
        verdict_ = verdict::no_file;
        std::snprintf(text_, sizeof text_, "this is no RDB file");
        return;
    }
    const bool is_read = is_valkeys ? version_ == version_of_valkey
                                    : version_ >= min_version && version_ <= max_version;
    if (is_read) return;
    verdict_ = verdict::unknown_format;
    std::snprintf(text_, sizeof text_,
                  "it has RDB version %u%s (%.*s), and versions %u to %u of Redis and %u of Valkey "
                  "are read",
                  version_, is_valkeys ? " of Valkey" : "", static_cast<int>(magic.size()),
                  magic.data(), min_version, max_version, version_of_valkey);
}

}  // namespace eddy::cache::rdb
