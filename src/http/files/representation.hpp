// Representation of a resource by one file: what its responses say of it.
#pragma once

#include <eddy/io/file.hpp>

#include "http/fields/content_coding.hpp"
#include "http/fields/http_date.hpp"
#include "http/files/file_content.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace eddy::http {

/// A file with the validators of its content.
struct representation {
    content_coding coding = content_coding::identity;  ///< of the file's content
    file_status status;
    std::uint64_t inserted = 0;  ///< bytes that its content has besides the file's
    std::string etag;            ///< strong
    std::int64_t modified = 0;   ///< seconds since 1970
    std::string last_modified;   ///< the same as a date; empty for one beyond the years of dates
    /// All of it; null: not in memory.
    std::shared_ptr<const file_content> content;

    /// Bytes of the content.
    std::uint64_t size() const noexcept { return status.size + inserted; }
};

/// The representation by a file of this status. `now`, seconds since 1970, bounds Last-Modified.
/// `insertion` is a text that the content has besides the file's.
representation representation_of(const file_status& status, content_coding coding, std::int64_t now,
                                 std::string_view insertion = {});

/// The content of an HTML file with `insertion` before the last "</body>", or at its end.
std::string insert_into_html(std::string html, std::string_view insertion);

/// The suffix of the name of a file whose content has this coding, such as ".br"; empty for
/// identity. It has one for each of precompressed_codings alone.
std::string_view suffix_of(content_coding coding) noexcept;

/// Codings of precompressed files beside others, by preference among codings that a client accepts
/// equally.
inline constexpr content_coding precompressed_codings[] = {content_coding::br, content_coding::zstd,
                                                           content_coding::gzip};

}  // namespace eddy::http
