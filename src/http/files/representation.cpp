// Validators from a file's status.
#include "http/files/representation.hpp"

#include <eddy/base/assert.hpp>

#include <algorithm>
#include <array>
#include <charconv>

namespace eddy::http {
namespace {

void append_hex(std::string& to, std::uint64_t number) {
    std::array<char, 16> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number, 16).ptr;
    to.append(digits.data(), end);
}

/// A strong tag: no two contents of a resource share it. The content of a file cannot change
/// without its time of change, which, unlike that of modification, only the kernel sets; rename(2)
/// and link(2) set it, too, so another file of that name has another one. The exception are two
/// changes of one size within a tick of the kernel's clock, 4 ms or less, the first of which has
/// been served; since Linux 6.13 these differ, too, because a status that was read makes the next
/// change take a finer time. Files of two folders that a link exchanges are distinguished likewise,
/// unless they were written within one tick. The number of the inode would distinguish these, but
/// show clients the layout of the disk. The coding distinguishes variants that are links of one
/// file, the hash of the insertion its results.
std::string tag_of(const file_status& status, content_coding coding, std::string_view insertion) {
    std::string tag = "\"";
    append_hex(tag, static_cast<std::uint64_t>(status.changed_seconds));
    tag += '.';
    append_hex(tag, status.changed_nanoseconds);
    tag += '-';
    append_hex(tag, status.size);
    if (coding != content_coding::identity) {
        tag += '-';
        tag += to_string(coding);
    }
    if (!insertion.empty()) {
        // FNV-1a: the same for each process that inserts the same.
        std::uint64_t hash = 0xcbf29ce484222325;
        for (const char each : insertion)
            hash = (hash ^ static_cast<unsigned char>(each)) * 0x100000001b3;
        tag += "-i";
        append_hex(tag, hash);
    }
    return tag += '"';
}

}  // namespace

representation representation_of(const file_status& status, content_coding coding, std::int64_t now,
                                 std::string_view insertion) {
    representation made;
    made.coding = coding;
    made.status = status;
    made.inserted = insertion.size();
    made.etag = tag_of(status, coding, insertion);
    // A date in the future would be one that the next change may not pass.
    made.modified = std::min(status.modified_seconds, now);
    if (made.modified >= earliest_http_date && made.modified <= latest_http_date)
        made.last_modified = http_date_writer().write(made.modified);
    return made;
}

std::string insert_into_html(std::string html, std::string_view insertion) {
    constexpr std::string_view end = "</body>";
    const auto is_same = [](char a, char b) {
        return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
    };
    const auto found = std::find_end(html.begin(), html.end(), end.begin(), end.end(), is_same);
    html.insert(found, insertion.begin(), insertion.end());
    return html;
}

std::string_view suffix_of(content_coding coding) noexcept {
    switch (coding) {
        case content_coding::identity: return "";
        case content_coding::gzip: return ".gz";
        case content_coding::br: return ".br";
        case content_coding::zstd: return ".zst";
        case content_coding::deflate: break;
    }
    EDDY_ASSERT(false);
    return "";
}

}  // namespace eddy::http
