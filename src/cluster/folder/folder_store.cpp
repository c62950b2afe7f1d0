// Files of a member, and the calls of the store on the threads for files.
#include "cluster/folder/folder_store.hpp"

#include <eddy/base/random.hpp>
#include <eddy/base/unique_fd.hpp>
#include <eddy/io/loop.hpp>

#include "base/text/terminal_text.hpp"
#include "cluster/folder/folder_watch.hpp"
#include "cluster/member_codec.hpp"
#include "io/files/off_loop.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <system_error>
#include <type_traits>
#include <utility>

namespace eddy::cluster {
namespace {

/// Bytes of a member's name that fit into the name of its file.
constexpr std::size_t max_file_name = NAME_MAX - member_suffix.size();

/// Pause before a folder that cannot be watched is tried again.
constexpr duration watch_pause = std::chrono::seconds(1);

std::string fresh_name(const std::string& id) { return "." + id + ".new"; }
std::string beat_file(const std::string& name) { return name + std::string(beat_suffix); }
std::string member_file(const std::string& name) { return name + std::string(member_suffix); }

unique_fd open_path(const std::string& path) noexcept {
    return unique_fd(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
}

/// The beat that is there, if it can be read.
std::optional<beat> beat_at(int folder, const std::string& name, const trusted_owners& owners) {
    const auto content = read_shared(folder, beat_file(name), max_beat_bytes, owners);
    if (!content) return std::nullopt;
    auto its = parse_beat(content->text);
    return its ? std::optional(std::move(*its)) : std::nullopt;
}

void erase_files(const std::string& path, const std::string& name, const beat& last,
                 const trusted_owners& owners) {
    const unique_fd folder = open_path(path);
    if (!folder) return;
    const auto there = beat_at(folder.get(), name, owners);
    const bool is_its = there && there->id == last.id && there->count <= last.count;
    // The beat first: without it there is no member.
    if (is_its && ::unlinkat(folder.get(), beat_file(name).c_str(), 0) == 0)
        ::unlinkat(folder.get(), member_file(name).c_str(), 0);
    ::unlinkat(folder.get(), fresh_name(last.id).c_str(), 0);
}

/// Awaits `call`, which returns an outcome, on a thread for files. `call` refers to what lives
/// until then.
template <class Call>
task<std::invoke_result_t<Call&>> in_background(Call call, std::string place) {
    using value = std::invoke_result_t<Call&>;
    const auto wrapped = [&call] { return result<value>(std::in_place, call()); };
    auto done = co_await off_loop(wrapped);
    if (!done)
        co_return refuse(503,
                         fmt::format("{} cannot be used now: {}", place, done.error().message()));
    co_return std::move(*done);
}

}  // namespace

// --- folder_writer ----------------------------------------------------------------------------

/// A folder that cannot be opened: whether another attempt may succeed.
std::unexpected<problem> folder_writer::unusable(int error) const {
    const std::string place = printable(path_);
    if (error == ENOENT)
        return refuse(503, fmt::format("the folder {} does not exist: make it, or mount the file "
                                       "system that it is on",
                                       place));
    if (error == ENOTDIR || error == EACCES || error == ELOOP || error == ENAMETOOLONG)
        return refuse(400, fmt::format("the folder {} cannot be used: {}. Choose another one, or "
                                       "give this user the right to it",
                                       place, std::generic_category().message(error)));
    return refuse(503, fmt::format("the folder {} cannot be used now: {}", place,
                                   std::generic_category().message(error)));
}

/// A file that cannot be written.
std::unexpected<problem> folder_writer::unwritten(std::error_code error) const {
    const bool is_lasting = error == errno_code(EACCES) || error == errno_code(EROFS) ||
                            error == errno_code(EPERM) || error == errno_code(EISDIR);
    return refuse(is_lasting ? 400 : 503, fmt::format("the folder {} cannot be written to: {}",
                                                      printable(path_), error.message()));
}

/// Refuses an entry that was left there, and is no file of a member.
outcome<> folder_writer::check_entry(int folder, const std::string& file) const {
    const auto content = read_shared(folder, file, max_member_bytes, owners_);
    if (content || content.error().why != unreadable::cause::unfit) return {};
    return refuse(
        400, fmt::format("the file {} is in the way of this member: it {}. Remove it, or "
                         "choose another name",
                         printable(fmt::format("{}/{}", path_, file)), content.error().reason));
}

outcome<> folder_writer::prepare(const std::string& name) {
    if (name.size() > max_file_name)
        return refuse(400, fmt::format("the name {} has {} bytes; in a folder a member's name has "
                                       "at most {}",
                                       in_quotes(name, max_name), name.size(), max_file_name));
    const unique_fd folder = open_path(path_);
    if (!folder) return unusable(errno);
    // Writing shows best that it may be written. Others may do the same at this time.
    const std::string fresh = fmt::format(".{:016x}.new", entropy_seed());
    const std::string probed = fresh + ".probe";
    const auto probe = replace_file(folder.get(), fresh, probed, "");
    if (!probe) return unwritten(probe.error());
    ::unlinkat(folder.get(), probed.c_str(), 0);
    owners_.add(probe->owner);
    if (auto fits = check_entry(folder.get(), beat_file(name)); !fits) return fits;
    return check_entry(folder.get(), member_file(name));
}

outcome<std::optional<beat>> folder_writer::write(const beat_request& request) {
    const unique_fd folder = open_path(path_);
    if (!folder) return unusable(errno);
    const auto there = beat_at(folder.get(), request.name, owners_);
    if (there && there->id != request.its.id) {
        if (request.is_yielding || outranks(*there, request.its)) return there;
        // A start that was killed may have left it.
        ::unlinkat(folder.get(), fresh_name(there->id).c_str(), 0);
    }
    const std::string fresh = fresh_name(request.its.id);
    const std::string file = member_file(request.name);
    const bool is_news =
        sequence_ != request.its.sequence || stamp_at(folder.get(), file) != stamp_;
    if (is_news) {
        const auto written = replace_file(folder.get(), fresh, file, *request.text);
        if (!written) return unwritten(written.error());
        sequence_ = request.its.sequence;
        stamp_ = *written;
    }
    const auto written =
        replace_file(folder.get(), fresh, beat_file(request.name), format_beat(request.its));
    if (!written) return unwritten(written.error());
    if (is_news) announce_change(folder.get(), file);
    return std::optional<beat>();
}

// --- folder_store -----------------------------------------------------------------------------

folder_store::folder_store(std::string path, std::vector<uid_t> trusted)
    : path_(std::move(path)),
      owners_(std::move(trusted)),
      writer_(path_, owners_),
      reader_(path_, owners_) {}

std::string folder_store::description() const {
    return fmt::format("the folder {}", printable(path_));
}

task<outcome<>> folder_store::prepare(std::string name) {
    own_file_ = member_file(name);
    const auto call = [this, &name] { return writer_.prepare(name); };
    co_return co_await in_background(call, description());
}

task<outcome<std::optional<beat>>> folder_store::write(beat_request request) {
    const auto call = [this, &request] { return writer_.write(request); };
    co_return co_await in_background(call, description());
}

task<outcome<store_view>> folder_store::read() {
    const auto call = [this] { return reader_.read(); };
    co_return co_await in_background(call, description());
}

task<void> folder_store::erase(std::string name, beat last) {
    const auto call = [this, &name, &last] {
        erase_files(path_, name, last, owners_);
        return outcome<>();
    };
    static_cast<void>(co_await in_background(call, description()));
}

task<void> folder_store::watch(event& changed) {
    if (loop::current().kind() == io_backend_kind::sim) co_return;
    for (;;) {
        folder_watch files(own_file_);
        const auto call = [this, &files] { return files.open(path_); };
        const result<> opened = co_await off_loop(call);
        if (opened) co_await files.follow(changed);
        const result<> slept = co_await sleep_for(watch_pause);
        if (!slept) co_return;
    }
}

}  // namespace eddy::cluster
