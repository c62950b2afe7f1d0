// Media types of files by the extension of their names.
#pragma once

#include <string_view>

namespace eddy::http {

/// A media type.
struct media_type {
    /// Value of Content-Type, with "charset=utf-8" for texts.
    std::string_view name;
    /// True if content of the type usually shrinks when compressed.
    bool compressible = false;
};

/// The media type of a file of this name; "application/octet-stream" for unknown extensions. Any
/// thread.
media_type media_type_of(std::string_view file_name) noexcept;

/// True if content of this Content-Type usually shrinks when compressed: texts, JSON and XML of all
/// kinds, scripts, and compressible types of media_type_of(). Any thread.
bool is_compressible(std::string_view content_type) noexcept;

}  // namespace eddy::http
