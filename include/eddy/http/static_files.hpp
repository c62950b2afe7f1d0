// Static files: the regular files below a folder as responses to GET and HEAD. No path leads out of
// the folder, and nothing blocks the loop.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/http/body.hpp>
#include <eddy/http/request.hpp>
#include <eddy/http/response.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace eddy::http {

/// Options of static_files. Names are relative to the root and not percent-encoded.
struct static_options {
    /// File that is served for a folder; empty for none.
    std::string index = "index.html";
    /// A folder without its index is answered by a page that lists it, static_files::listing_limit
    /// entries a page. The query parameters `sort` (name, size, time), `order` (asc, desc) and
    /// `page` choose its part.
    bool listing = false;
    /// Entries of a folder that a listing reads, in an order of the system; of one with more it
    /// shows these, and says so.
    std::size_t listed_entries = 100'000;
    /// File below the root that is served, with status 200, for paths that name nothing, such as
    /// the routes of a single-page application, whatever is encoded in them; empty for none.
    std::string fallback;
    /// A file `NAME.br`, `NAME.zst` or `NAME.gz` is served in place of `NAME` to clients whose
    /// Accept-Encoding prefers it, for types that are worth compressing. It is not compared with
    /// `NAME`: remake it when that changes.
    bool precompressed = true;
    /// Bytes of a cache in memory for files of at most static_files::cached_file_limit; 0: none.
    /// A response keeps the content that it sends, also after the cache has dropped it.
    std::size_t cache_bytes = 0;
    /// Cached content is served without a system call for at most so long; then it is compared with
    /// the files.
    duration cache_time = std::chrono::seconds(1);
    /// Files that the cache does not hold are sent by sendfile(2) where the connection can do that
    /// (TCP without TLS), from the kernel's memory without a copy. Only for files that are replaced
    /// by rename(2): a change in place also changes responses under way. Clients get the new bytes,
    /// or zeros where it was cut, with the size and the ETag of before.
    bool sendfile = false;
    /// Value of Cache-Control in responses by files, such as "max-age=3600"; empty for none.
    std::string cache_control;
    /// Text that is inserted into HTML files of at most static_files::insertion_limit bytes, before
    /// their last "</body>", or at their end where there is none; empty for none. Sizes, ranges and
    /// the ETag are those of the result. Precompressed files beside such a file are not served.
    std::string html_insertion;
    /// Names that begin with a dot are served, too; otherwise only ".well-known" is.
    bool hidden = false;
};

/// The files below a folder, its root. Requests are confined to it by the kernel (openat2(2)):
/// "..", encoded or not, symbolic links and names with NUL or an encoded slash never reach another
/// file; symbolic links that are relative and stay inside work. Only regular files are served.
/// Files of at most whole_limit bytes are answered whole; larger ones are read as they are sent,
/// with one buffer of slice_bytes, and a file that shrinks meanwhile cuts the connection. Larger
/// ones in the cache are in sealed memory, which TCP without TLS sends without a copy.
/// Responses have a strong ETag and Last-Modified; conditions and ranges are those of RFC 9110,
/// with at most 16 ranges, which must not overlap. One loop's thread: each loop opens its own.
class static_files {
public:
    /// Files of at most so many bytes are read whole before they are sent.
    static constexpr std::size_t whole_limit = 64 * 1024;
    /// Larger ones are sent in slices of so many bytes, one at a time for each response.
    static constexpr std::size_t slice_bytes = body_writer::file_slice_bytes;
    /// Larger files are not cached.
    static constexpr std::size_t cached_file_limit = 1024 * 1024;
    /// Larger HTML files get no static_options::html_insertion.
    static constexpr std::size_t insertion_limit = cached_file_limit;
    /// A page of a listing has at most so many entries.
    static constexpr std::size_t listing_limit = 1000;

    /// Opens the folder `root`, which must be readable; it may wait for the disk. That folder is
    /// served as long as this lives, also when another one takes its name. Errors are
    /// open(2)'s, such as ENOENT, ENOTDIR and EACCES; errc::unsupported where the kernel has no
    /// openat2(2) (before Linux 5.6, or in a container that refuses it).
    [[nodiscard]] static result<static_files> open(const std::string& root, static_options options);

    /// `other` may then only be assigned to or destroyed.
    static_files(static_files&& other) noexcept;
    /// The same. A serve() of the previous folder that is under way ends with that.
    static_files& operator=(static_files&& other) noexcept;
    ~static_files();

    /// Yields the response to a request for `path`: the path of its target below the mount, still
    /// percent-encoded, with or without a slash at its beginning. Both must live until then, but
    /// need not until the response is sent; this object must live until the task has begun. Errors
    /// are responses: 301 to the same path with a slash for a folder without one; 403 for a file
    /// that may not be read; 404 for what does not exist, is no regular file or lies outside; 405
    /// for methods other than GET and HEAD; 503 when there are too few descriptors or too much work
    /// for the loop's threads.
    task<response> serve(request& incoming, std::string_view path);

    /// Bytes that the cache takes.
    std::size_t cached_bytes() const noexcept;

private:
    struct state;
    explicit static_files(std::shared_ptr<state> made) noexcept;
    std::shared_ptr<state> state_;
};

}  // namespace eddy::http
