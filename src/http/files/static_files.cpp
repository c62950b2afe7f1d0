// From a path to a response: the file, its index or the fallback, and the errors.
#include <eddy/http/static_files.hpp>

#include <eddy/base/unique_fd.hpp>
#include <eddy/io/file.hpp>

#include "base/regular_file.hpp"
#include "http/files/file_body.hpp"
#include "http/files/file_path.hpp"
#include "http/files/media_types.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace eddy::http {
namespace {

constexpr std::string_view text_type = "text/plain; charset=utf-8";

response plain(int status) {
    return response(status, text_type, std::string(http1::reason_phrase(status)) + "\n");
}

/// Status for a file that cannot be opened or read. What lies outside of the root, or is no regular
/// file, does not exist.
int status_for(std::error_code error) noexcept {
    if (error == errc::limit_reached) return 503;
    if (error.category() != std::generic_category()) return 404;  // not_regular()
    switch (error.value()) {
        case EACCES:
        case EPERM: return 403;
        case EMFILE:
        case ENFILE:
        case ENOMEM:
        case EAGAIN: return 503;
        case ENOENT:
        case ENOTDIR:
        case EISDIR:
        case ELOOP:
        case EXDEV:
        case ENAMETOOLONG:
        case EINVAL:
        case ENXIO: return 404;
        default: return 500;
    }
}

/// Relative reference from a target's path to the same with a slash. It leads to no other host,
/// whatever the path begins with, and stays below a mount.
std::string folder_location(const request& incoming) {
    const std::string_view path = incoming.path();
    const std::size_t query = incoming.target().find('?');
    std::string location = "./";
    location += path.substr(path.rfind('/') + 1);
    location += '/';
    if (query != std::string_view::npos) location += incoming.target().substr(query);
    return location;
}

response folder_redirect(const request& incoming) {
    response moved = plain(301);
    moved.add("Location", folder_location(incoming));
    return moved;
}

}  // namespace

struct static_files::state {
    unique_fd root;
    static_options options;

    task<response> answer(request& incoming, std::string_view path);
    task<response> answer_missing(request& incoming, int status);
    task<response> answer_with_file(file opened, std::string_view name, int status);
};

static_files::static_files(std::unique_ptr<state> made) noexcept : state_(std::move(made)) {}
static_files::static_files(static_files&& other) noexcept = default;
static_files& static_files::operator=(static_files&& other) noexcept = default;
static_files::~static_files() = default;

result<static_files> static_files::open(const std::string& root, static_options options) {
    auto made = std::make_unique<state>();
    made->options = std::move(options);
    made->root.reset(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!made->root) return fail_errno();
    // The root may be readable, and its files nevertheless out of reach.
    const auto usable = open_beneath(made->root.get(), ".", O_PATH, false);
    if (!usable && (usable.error() == std::errc::function_not_supported ||
                    usable.error() == std::errc::operation_not_permitted))
        return fail(errc::unsupported);
    if (!usable) return fail(usable.error());
    if (::faccessat(made->root.get(), ".", X_OK, 0) != 0) return fail_errno();
    return static_files(std::move(made));
}

task<response> static_files::serve(request& incoming, std::string_view path) {
    if (incoming.method() != "GET" && incoming.method() != "HEAD") {
        response refused = plain(405);
        refused.add("Allow", "GET, HEAD");
        co_return refused;
    }
    co_return co_await state_->answer(incoming, path);
}

task<response> static_files::state::answer(request& incoming, std::string_view path) {
    auto wanted = decode_path(path, options.hidden);
    if (!wanted) co_return plain(404);
    std::string name = wanted->name;
    // The mount's own path.
    if (path.empty() && !incoming.path().ends_with('/')) co_return folder_redirect(incoming);
    if (wanted->is_folder) {
        if (options.index.empty()) co_return co_await answer_missing(incoming, 404);
        if (!name.empty()) name += '/';
        name += options.index;
    }
    auto opened = co_await file::open_beneath(root.get(), name);
    if (opened) co_return co_await answer_with_file(std::move(*opened), name, 200);
    if (opened.error() == std::errc::is_a_directory && !wanted->is_folder)
        co_return folder_redirect(incoming);
    co_return co_await answer_missing(incoming, status_for(opened.error()));
}

task<response> static_files::state::answer_missing(request&, int status) {
    if (status != 404 || options.fallback.empty()) co_return plain(status);
    auto opened = co_await file::open_beneath(root.get(), options.fallback);
    if (!opened) co_return plain(status_for(opened.error()));
    co_return co_await answer_with_file(std::move(*opened), options.fallback, 200);
}

task<response> static_files::state::answer_with_file(file opened, std::string_view name,
                                                     int status) {
    const auto about = opened.status();
    if (!about) co_return plain(500);
    response made(status);
    made.add("Content-Type", media_type_of(name).name);
    if (about->size <= whole_limit) {
        auto text = co_await read_extent(opened, 0, about->size);
        if (!text)
            co_return plain(text.error() == errc::truncated ? 503 : status_for(text.error()));
        made.body = std::move(*text);
    } else {
        std::vector<body_part> parts(1);
        parts[0].size = about->size;
        made.body = file_body(std::move(opened), std::move(parts));
    }
    co_return made;
}

}  // namespace eddy::http
