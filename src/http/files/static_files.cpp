// From a path to a response: the file, its index or the fallback, and the errors.
#include <eddy/http/static_files.hpp>

#include <eddy/base/unique_fd.hpp>
#include <eddy/io/file.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/semaphore.hpp>

#include "base/files/regular_file.hpp"
#include "http/fields/content_coding.hpp"
#include "http/fields/http_date.hpp"
#include "http/files/file_body.hpp"
#include "http/files/file_cache.hpp"
#include "http/files/file_path.hpp"
#include "http/files/file_response.hpp"
#include "http/files/folder_listing.hpp"
#include "http/files/media_types.hpp"
#include "http/files/representation.hpp"
#include "io/files/off_loop.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>
#include <vector>

namespace eddy::http {
namespace {

/// A file that changes while it is read whole is read so often. Then it is sent as large ones are,
/// which may change, too: a log that is written without pause can be read.
constexpr int read_attempts = 3;
/// At most so many folders are listed at a time. The entries of a large one take megabytes, and the
/// loop's other threads for files must stay free for files.
constexpr std::size_t listings_at_once = 2;

constexpr std::array offered_codings{content_coding::br, content_coding::zstd, content_coding::gzip,
                                     content_coding::identity};

/// Status for a file that cannot be opened or read. What lies outside of the root, or is no regular
/// file, does not exist.
int status_for(std::error_code error) noexcept {
    // A file that shrinks while it is read, and work beyond the queue of the loop's threads.
    if (error == errc::truncated || error == errc::limit_reached) return 503;
    if (error == errc::cancelled) return 503;
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

/// True if the connection's peer has closed it, or finished sending. False where that is not known.
bool has_hung_up(const stream* connection) noexcept {
    const int socket = connection == nullptr ? -1 : connection->native_handle();
    if (socket < 0) return false;
    pollfd seen{.fd = socket, .events = POLLRDHUP, .revents = 0};
    return ::poll(&seen, 1, 0) > 0;
}

response folder_redirect(const request& incoming) {
    response moved = plain_response(301);
    moved.add("Location", folder_location(incoming));
    return moved;
}

}  // namespace

struct static_files::state {
    state(unique_fd folder, static_options wanted)
        : root(std::move(folder)), options(std::move(wanted)), cache(options.cache_bytes) {}

    unique_fd root;
    static_options options;
    file_cache cache;
    semaphore listings{listings_at_once};

    bool may_vary(const media_type& type) const noexcept {
        return options.precompressed && type.compressible;
    }
    /// The text that goes into a file; empty: it is served as it is.
    std::string_view insertion_for(const media_type& type, std::uint64_t size) const noexcept {
        const bool takes = type.name.starts_with("text/html") && size <= insertion_limit;
        return takes ? std::string_view(options.html_insertion) : std::string_view();
    }
    response error_response(std::error_code error) const {
        return plain_response(status_for(error));
    }

    task<response> answer(request& incoming, std::string_view path);
    task<response> answer_missing(request& incoming, std::error_code error);
    task<result<response>> list(const request& incoming, std::string name, listing_view view);

    // Responses by the file of a name below the root; they fail where it cannot be opened.
    task<result<response>> answer_with(request& incoming, std::string name);
    task<result<response>> answer_from_file(request& incoming, const std::string& name,
                                            std::size_t read_whole);
    task<result<response>> answer_from_memory(request& incoming, std::shared_ptr<resource> found);
    task<result<body>> body_of(request& incoming, file opened, const representation& chosen,
                               std::vector<body_part> parts, std::size_t read_whole);
    task<result<std::shared_ptr<const file_content>>> insert(file& from,
                                                             const representation& chosen);

    // The cache. Null for what is not to be cached.
    task<result<std::shared_ptr<resource>>> find_resource(const std::string& name);
    task<result<std::shared_ptr<resource>>> load_resource(const std::string& name);
    task<bool> is_unchanged(const resource& known);
    task<result<>> load_content(std::shared_ptr<resource> of, content_coding coding);
};

static_files::static_files(std::shared_ptr<state> made) noexcept : state_(std::move(made)) {}
static_files::static_files(static_files&& other) noexcept = default;
static_files& static_files::operator=(static_files&& other) noexcept = default;
static_files::~static_files() = default;

result<static_files> static_files::open(const std::string& root, static_options options) {
    unique_fd folder(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!folder) return fail_errno();
    const auto usable = open_beneath(folder.get(), ".", O_PATH, false);
    if (!usable && (usable.error() == std::errc::function_not_supported ||
                    usable.error() == std::errc::operation_not_permitted))
        return fail(errc::unsupported);
    if (!usable) return fail(usable.error());
    // A folder may be readable, and its files nevertheless out of reach.
    if (::faccessat(folder.get(), ".", X_OK, AT_EACCESS) != 0) return fail_errno();
    return static_files(std::make_shared<state>(std::move(folder), std::move(options)));
}

std::size_t static_files::cached_bytes() const noexcept { return state_->cache.bytes(); }

task<response> static_files::serve(request& incoming, std::string_view path) {
    if (incoming.method() != "GET" && incoming.method() != "HEAD") {
        response refused = plain_response(405);
        refused.add("Allow", "GET, HEAD");
        co_return refused;
    }
    // Another folder may take the place of this one meanwhile.
    const std::shared_ptr<state> own = state_;
    co_return co_await own->answer(incoming, path);
}

task<response> static_files::state::answer(request& incoming, std::string_view path) {
    const auto wanted = decode_path(path, options.hidden);
    // No client sends "..", encoded or not, for a route of an application.
    if (!wanted && wanted.error() == errc::malformed) co_return plain_response(404);
    if (!wanted) co_return co_await answer_missing(incoming, wanted.error());
    // The mount's own path.
    if (path.empty() && !incoming.path().ends_with('/')) co_return folder_redirect(incoming);
    if (!wanted->is_folder) {
        auto answered = co_await answer_with(incoming, wanted->name);
        if (answered) co_return std::move(*answered);
        if (answered.error() == std::errc::is_a_directory) co_return folder_redirect(incoming);
        co_return co_await answer_missing(incoming, answered.error());
    }
    std::error_code missing = std::make_error_code(std::errc::no_such_file_or_directory);
    if (!options.index.empty()) {
        const std::string_view slash = wanted->name.empty() ? "" : "/";
        std::string name = wanted->name;
        name.append(slash).append(options.index);
        auto answered = co_await answer_with(incoming, std::move(name));
        if (answered) co_return std::move(*answered);
        missing = answered.error();
    }
    if (options.listing && status_for(missing) == 404) {
        const auto view = listing_view::from(incoming.query("sort"), incoming.query("order"),
                                             incoming.query("page"));
        auto listed = co_await list(incoming, wanted->name, view);
        if (listed) co_return std::move(*listed);
        missing = listed.error();
    }
    co_return co_await answer_missing(incoming, missing);
}

task<response> static_files::state::answer_missing(request& incoming, std::error_code error) {
    if (status_for(error) == 404 && !options.fallback.empty()) {
        auto answered = co_await answer_with(incoming, options.fallback);
        if (answered) co_return std::move(*answered);
        error = answered.error();
    }
    co_return error_response(error);
}

task<result<response>> static_files::state::list(const request& incoming, std::string name,
                                                 listing_view view) {
    // Until the page is made: what waits for a thread between the two steps has its entries.
    permit place = listings.try_acquire();
    if (!place) {
        auto waited = co_await listings.acquire();
        if (!waited) co_return fail(waited.error());
        place = std::move(*waited);
        // Most clients that have finished sending have gone: their pages are not made while others
        // wait. One that has not gets a 503.
        if (has_hung_up(incoming.connection())) co_return fail(errc::cancelled);
    }
    const std::string folder = name.empty() ? "." : name;
    // One more shows that there are more.
    const std::size_t most = options.listed_entries;
    auto entries = co_await file::list_beneath(root.get(), folder, most + 1);
    if (!entries) co_return fail(entries.error());
    folder_list list{std::move(*entries), false, listing_limit};
    list.is_cut = list.entries.size() > most;
    if (list.is_cut) list.entries.resize(most);
    if (!options.hidden)
        std::erase_if(list.entries, [](const folder_entry& each) { return is_hidden(each.name); });
    // Sorting a hundred thousand names takes longer than a loop may be held up.
    const cancel_source* const stop = co_await current_source();
    if (stop != nullptr && stop->requested()) co_return fail(errc::cancelled);
    auto page = co_await off_loop(
        [&]() -> result<std::string> { return list_folder(name, std::move(list), view); });
    if (!page) co_return fail(page.error());
    co_return response(200, "text/html; charset=utf-8", std::move(*page));
}

task<result<response>> static_files::state::answer_with(request& incoming, std::string name) {
    if (cache.limit() > 0) {
        auto found = co_await find_resource(name);
        if (!found) co_return fail(found.error());
        if (*found) {
            auto answered = co_await answer_from_memory(incoming, std::move(*found));
            if (answered) co_return answered;
        }
    }
    result<response> answered = fail(errc::truncated);
    for (int i = 0; i < read_attempts && !answered && answered.error() == errc::truncated; ++i)
        answered = co_await answer_from_file(incoming, name, whole_limit);
    if (!answered && answered.error() == errc::truncated)
        answered = co_await answer_from_file(incoming, name, 0);
    co_return answered;
}

/// Contents of at most `read_whole` bytes are read before they are sent; fails with errc::truncated
/// when the file changes meanwhile.
task<result<response>> static_files::state::answer_from_file(request& incoming,
                                                             const std::string& name,
                                                             std::size_t read_whole) {
    auto opened = co_await file::open_beneath(root.get(), name);
    if (!opened) co_return fail(opened.error());
    const media_type type = media_type_of(name);
    std::string_view insertion;
    if (!options.html_insertion.empty()) {
        const auto whole = opened->status();
        if (!whole) co_return fail(whole.error());
        insertion = insertion_for(type, whole->size);
    }
    const bool varies = may_vary(type) && insertion.empty();
    content_coding coding = content_coding::identity;
    if (varies) {
        const accepted_codings accepted(incoming.headers());
        std::vector<content_coding> offered(offered_codings.begin(), offered_codings.end());
        for (coding = accepted.choose(offered); coding != content_coding::identity;
             coding = accepted.choose(offered)) {
            auto variant =
                co_await file::open_beneath(root.get(), name + std::string(suffix_of(coding)));
            if (variant) {
                opened = std::move(variant);
                break;
            }
            std::erase(offered, coding);
        }
    }
    const auto status = opened->status();
    if (!status) co_return fail(status.error());
    const std::int64_t now = wall_clock_seconds();
    const representation chosen = representation_of(*status, coding, now, insertion);
    file_response made = respond_with(incoming, chosen, type, varies, options.cache_control, now);
    if (made.has_content) {
        auto content = co_await body_of(incoming, std::move(*opened), chosen, std::move(made.parts),
                                        read_whole);
        if (!content) co_return fail(content.error());
        made.head.body = std::move(*content);
    }
    co_return std::move(made.head);
}

/// The content of an HTML file with what is inserted; errc::truncated when it changes meanwhile.
task<result<std::shared_ptr<const file_content>>> static_files::state::insert(
    file& from, const representation& chosen) {
    auto read = co_await read_extent(from, 0, static_cast<std::size_t>(chosen.status.size));
    if (!read) co_return fail(read.error());
    if (from.status() != chosen.status) co_return fail(errc::truncated);
    co_return std::make_shared<const file_content>(
        insert_into_html(std::move(*read), options.html_insertion));
}

task<result<body>> static_files::state::body_of(request& incoming, file opened,
                                                const representation& chosen,
                                                std::vector<body_part> parts,
                                                std::size_t read_whole) {
    const std::uint64_t size = size_of(parts);
    if (incoming.method() == "HEAD") co_return unsent_body(size);
    if (chosen.inserted > 0) {
        auto content = co_await insert(opened, chosen);
        if (!content) co_return fail(content.error());
        co_return memory_body(std::move(*content), std::move(parts));
    }
    if (size > read_whole)
        co_return file_body(std::move(opened), std::move(parts), options.sendfile);
    std::string text;
    for (const body_part& part : parts) {
        const auto extent =
            co_await read_extent(opened, part.offset, static_cast<std::size_t>(part.size));
        if (!extent) co_return fail(extent.error());
        text += part.before;
        text += *extent;
    }
    if (opened.status() != chosen.status) co_return fail(errc::truncated);
    co_return body(std::move(text));
}

/// Fails when the content could not be brought into memory.
task<result<response>> static_files::state::answer_from_memory(request& incoming,
                                                               std::shared_ptr<resource> found) {
    content_coding coding = content_coding::identity;
    if (found->variants.size() > 1) {
        std::vector<content_coding> offered;
        for (const content_coding each : offered_codings)
            if (found->find(each)) offered.push_back(each);
        coding = accepted_codings(incoming.headers()).choose(offered);
    }
    const representation& chosen = *found->find(coding);
    file_response made =
        respond_with(incoming, chosen, found->type, chosen.inserted == 0 && may_vary(found->type),
                     options.cache_control, wall_clock_seconds());
    if (!made.has_content) co_return std::move(made.head);
    if (incoming.method() == "HEAD") {
        made.head.body = unsent_body(size_of(made.parts));
        co_return std::move(made.head);
    }
    if (!chosen.content) {
        const auto loaded = co_await load_content(found, coding);
        if (!loaded) co_return fail(loaded.error());
    }
    made.head.body = memory_body(chosen.content, std::move(made.parts));
    co_return std::move(made.head);
}

task<result<std::shared_ptr<resource>>> static_files::state::find_resource(
    const std::string& name) {
    const time_point now = loop::current().now();
    if (auto known = cache.find(name)) {
        if (now - known->checked < options.cache_time) co_return known;
        // Other requests use it while this one compares.
        known->checked = now;
        if (co_await is_unchanged(*known)) co_return known;
        if (cache.find(name) == known) cache.erase(name);
    }
    co_return co_await load_resource(name);
}

task<bool> static_files::state::is_unchanged(const resource& known) {
    for (const content_coding coding : offered_codings) {
        const bool has_variants = may_vary(known.type) && known.variants.front().inserted == 0;
        if (coding != content_coding::identity && !has_variants) continue;
        const auto status =
            co_await file::status_beneath(root.get(), known.name + std::string(suffix_of(coding)));
        const bool is_file = status && status->is_regular();
        const representation* const variant = known.find(coding);
        if (is_file != (variant != nullptr)) co_return false;
        if (variant && variant->status != *status) co_return false;
    }
    co_return true;
}

task<result<std::shared_ptr<resource>>> static_files::state::load_resource(
    const std::string& name) {
    auto made = std::make_shared<resource>();
    made->name = name;
    made->type = media_type_of(name);
    made->checked = loop::current().now();
    const std::int64_t now = wall_clock_seconds();
    const auto status = co_await file::status_beneath(root.get(), name);
    if (!status) co_return fail(status.error());
    if (!status->is_regular()) co_return fail(not_regular(status->mode));
    // Its content alone would be too much for the cache, or all of it.
    if (status->size > cached_file_limit || status->size >= cache.limit()) co_return nullptr;
    const std::string_view insertion = insertion_for(made->type, status->size);
    made->variants.push_back(representation_of(*status, content_coding::identity, now, insertion));
    for (const content_coding coding : precompressed_codings) {
        if (!may_vary(made->type) || !insertion.empty()) break;
        const auto variant =
            co_await file::status_beneath(root.get(), name + std::string(suffix_of(coding)));
        if (variant && variant->is_regular() && variant->size <= cached_file_limit)
            made->variants.push_back(representation_of(*variant, coding, now));
    }
    cache.insert(made);
    co_return made;
}

task<result<>> static_files::state::load_content(std::shared_ptr<resource> of,
                                                 content_coding coding) {
    const file_cache::load reading = cache.begin_load();
    if (!reading) co_return fail(errc::limit_reached);
    representation& to = *of->find(coding);
    auto opened =
        co_await file::open_beneath(root.get(), of->name + std::string(suffix_of(coding)));
    if (!opened) co_return fail(opened.error());
    const auto size = static_cast<std::size_t>(to.status.size);
    const bool has_descriptor = size > whole_limit && cache.has_descriptor();
    auto content = to.inserted > 0 ? co_await insert(*opened, to)
                                   : co_await read_content(*opened, size, has_descriptor);
    if (!content || opened->status() != to.status) {
        if (cache.find(of->name) == of) cache.erase(of->name);
        co_return fail(errc::truncated);
    }
    to.content = std::move(*content);
    cache.recount(of);
    co_return result<>();
}

}  // namespace eddy::http
