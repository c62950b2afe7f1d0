// Head of an RDB file: its magic number, which names a family and a version.
#pragma once

#include "cache/rdb/format.hpp"

#include <cstddef>
#include <string_view>

namespace eddy::cache::rdb {

/// Magic number of a file, parsed.
class file_head {
public:
    /// Head of a file of which nothing is known yet.
    file_head() = default;
    /// `magic` are the first magic_bytes bytes of a file.
    explicit file_head(std::string_view magic) noexcept;

    /// Why the file cannot be read: a text that lives as long as this; null if it can.
    const char* fault() const noexcept { return verdict_ != verdict::readable ? text_ : nullptr; }
    /// The file is for another server, or of a later version: it need not be damaged.
    bool is_unknown_format() const noexcept { return verdict_ == verdict::unknown_format; }
    format_family family() const noexcept { return family_; }
    unsigned version() const noexcept { return version_; }

private:
    enum class verdict : unsigned char { readable, no_file, unknown_format };

    format_family family_ = format_family::redis;
    unsigned version_ = 0;
    verdict verdict_ = verdict::readable;
    char text_[128] = {};
};

}  // namespace eddy::cache::rdb
