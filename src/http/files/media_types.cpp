// Table of media types, sorted by extension.
#include "http/files/media_types.hpp"

#include "base/text/text.hpp"

#include <algorithm>
#include <array>

namespace eddy::http {
namespace {

struct row {
    std::string_view extension;  // in lower case
    media_type type;
};

constexpr std::array table{
    row{"3gp", {"video/3gpp"}},
    row{"7z", {"application/x-7z-compressed"}},
    row{"aac", {"audio/aac"}},
    row{"apng", {"image/apng"}},
    row{"atom", {"application/atom+xml; charset=utf-8", true}},
    row{"avif", {"image/avif"}},
    row{"bmp", {"image/bmp", true}},
    row{"bz2", {"application/x-bzip2"}},
    row{"cjs", {"text/javascript; charset=utf-8", true}},
    row{"css", {"text/css; charset=utf-8", true}},
    row{"csv", {"text/csv; charset=utf-8", true}},
    row{"cur", {"image/x-icon", true}},
    row{"deb", {"application/vnd.debian.binary-package"}},
    row{"doc", {"application/msword", true}},
    row{"docx", {"application/vnd.openxmlformats-officedocument.wordprocessingml.document"}},
    row{"eot", {"application/vnd.ms-fontobject", true}},
    row{"epub", {"application/epub+zip"}},
    row{"flac", {"audio/flac"}},
    row{"geojson", {"application/geo+json", true}},
    row{"gif", {"image/gif"}},
    row{"glb", {"model/gltf-binary", true}},
    row{"gltf", {"model/gltf+json", true}},
    row{"gz", {"application/gzip"}},
    row{"heic", {"image/heic"}},
    row{"htm", {"text/html; charset=utf-8", true}},
    row{"html", {"text/html; charset=utf-8", true}},
    row{"ico", {"image/x-icon", true}},
    row{"ics", {"text/calendar; charset=utf-8", true}},
    row{"jar", {"application/java-archive"}},
    row{"jpeg", {"image/jpeg"}},
    row{"jpg", {"image/jpeg"}},
    row{"js", {"text/javascript; charset=utf-8", true}},
    row{"json", {"application/json", true}},
    row{"jsonld", {"application/ld+json", true}},
    row{"jxl", {"image/jxl"}},
    row{"log", {"text/plain; charset=utf-8", true}},
    row{"m3u8", {"application/vnd.apple.mpegurl", true}},
    row{"m4a", {"audio/mp4"}},
    row{"m4v", {"video/mp4"}},
    row{"map", {"application/json", true}},
    row{"md", {"text/markdown; charset=utf-8", true}},
    row{"mid", {"audio/midi", true}},
    row{"mjs", {"text/javascript; charset=utf-8", true}},
    row{"mkv", {"video/x-matroska"}},
    row{"mov", {"video/quicktime"}},
    row{"mp3", {"audio/mpeg"}},
    row{"mp4", {"video/mp4"}},
    row{"mpd", {"application/dash+xml", true}},
    row{"mpeg", {"video/mpeg"}},
    row{"mpg", {"video/mpeg"}},
    row{"odp", {"application/vnd.oasis.opendocument.presentation"}},
    row{"ods", {"application/vnd.oasis.opendocument.spreadsheet"}},
    row{"odt", {"application/vnd.oasis.opendocument.text"}},
    row{"oga", {"audio/ogg"}},
    row{"ogg", {"audio/ogg"}},
    row{"ogv", {"video/ogg"}},
    row{"opus", {"audio/ogg"}},
    row{"otf", {"font/otf", true}},
    row{"pdf", {"application/pdf"}},
    row{"png", {"image/png"}},
    row{"ppt", {"application/vnd.ms-powerpoint", true}},
    row{"pptx", {"application/vnd.openxmlformats-officedocument.presentationml.presentation"}},
    row{"ps", {"application/postscript", true}},
    row{"rar", {"application/vnd.rar"}},
    row{"rss", {"application/rss+xml; charset=utf-8", true}},
    row{"rtf", {"application/rtf", true}},
    row{"sh", {"text/x-shellscript; charset=utf-8", true}},
    row{"svg", {"image/svg+xml; charset=utf-8", true}},
    row{"tar", {"application/x-tar", true}},
    row{"tgz", {"application/gzip"}},
    row{"tif", {"image/tiff", true}},
    row{"tiff", {"image/tiff", true}},
    row{"toml", {"application/toml", true}},
    row{"ts", {"video/mp2t"}},
    row{"tsv", {"text/tab-separated-values; charset=utf-8", true}},
    row{"ttf", {"font/ttf", true}},
    row{"txt", {"text/plain; charset=utf-8", true}},
    row{"vtt", {"text/vtt; charset=utf-8", true}},
    row{"wasm", {"application/wasm", true}},
    row{"wav", {"audio/wav", true}},
    row{"weba", {"audio/webm"}},
    row{"webm", {"video/webm"}},
    row{"webmanifest", {"application/manifest+json", true}},
    row{"webp", {"image/webp"}},
    row{"woff", {"font/woff"}},
    row{"woff2", {"font/woff2"}},
    row{"xhtml", {"application/xhtml+xml; charset=utf-8", true}},
    row{"xls", {"application/vnd.ms-excel", true}},
    row{"xlsx", {"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"}},
    row{"xml", {"application/xml; charset=utf-8", true}},
    row{"xsl", {"application/xslt+xml; charset=utf-8", true}},
    row{"xz", {"application/x-xz"}},
    row{"yaml", {"application/yaml", true}},
    row{"yml", {"application/yaml", true}},
    row{"zip", {"application/zip"}},
    row{"zst", {"application/zstd"}},
};

static_assert(std::ranges::is_sorted(table, {}, &row::extension));

/// Types that no file of the table has.
constexpr std::string_view other_compressible[] = {
    "application/javascript", "application/x-javascript", "application/ecmascript",
    "application/x-ndjson",   "application/graphql",      "application/x-www-form-urlencoded",
    "application/x-yaml",
};

/// The type without its parameters.
constexpr std::string_view essence_of(std::string_view content_type) noexcept {
    std::string_view type = content_type.substr(0, content_type.find(';'));
    while (type.ends_with(' ') || type.ends_with('\t')) type.remove_suffix(1);
    return type;
}

constexpr std::size_t longest = std::ranges::max(table, {}, [](const row& each) {
                                    return each.extension.size();
                                }).extension.size();

}  // namespace

media_type media_type_of(std::string_view file_name) noexcept {
    constexpr media_type unknown{"application/octet-stream"};
    const std::size_t dot = file_name.find_last_of("./");
    if (dot == std::string_view::npos || file_name[dot] != '.') return unknown;
    const std::string_view extension = file_name.substr(dot + 1);
    if (extension.size() > longest) return unknown;
    std::array<char, longest> folded{};
    std::ranges::transform(extension, folded.begin(), to_lower);
    const std::string_view wanted(folded.data(), extension.size());
    const auto* const found = std::ranges::lower_bound(table, wanted, {}, &row::extension);
    return found != table.end() && found->extension == wanted ? found->type : unknown;
}

bool is_compressible(std::string_view content_type) noexcept {
    const std::string_view type = essence_of(content_type);
    if (equal_in_any_case(type.substr(0, 5), "text/")) return true;
    for (const std::string_view suffix : {"+json", "+xml"})
        if (type.size() > suffix.size() &&
            equal_in_any_case(type.substr(type.size() - suffix.size()), suffix))
            return true;
    for (const std::string_view each : other_compressible)
        if (equal_in_any_case(type, each)) return true;
    return std::ranges::any_of(table, [&](const row& each) {
        return each.type.compressible && equal_in_any_case(type, essence_of(each.type.name));
    });
}

}  // namespace eddy::http
