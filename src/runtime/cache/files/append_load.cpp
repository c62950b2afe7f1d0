// Loading of an append-only file: parsing, execution, and reports of damage.
#include "runtime/cache/files/append_load.hpp"

#include <eddy/base/byte_buffer.hpp>
#include <eddy/io/file.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/wire/resp/request.hpp>

#include "cache/persistence/engine_files.hpp"
#include "cache/rdb/format.hpp"
#include "cache/rdb/load.hpp"
#include "runtime/cache/files/dump_file.hpp"
#include "runtime/cache/replication/trusted_limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace eddy::runtime::cache {
namespace {

using eddy::cache::rdb::loader;
using eddy::cache::rdb::reader;

/// One read from the disk.
constexpr std::size_t request_bytes = 512 * 1024;
/// Limits of the commands that are executed without a pause.
constexpr std::size_t slice_bytes = 32 * 1024;
constexpr std::size_t slice_commands = 256;
/// Refused commands that are reported one by one.
constexpr std::uint64_t most_reported = 10;
constexpr duration report_pause = std::chrono::seconds(2);

/// The remedy for a file that cannot be loaded: what the advice in the error proposes.
enum class remedy : std::uint8_t {
    another,  ///< nothing in it can be kept
    cut,      ///< what is behind good() can be dropped
};

/// True when a file that begins so may be an RDB file.
bool may_be_rdb(std::string_view text) noexcept {
    const auto begins = [text](std::string_view magic) {
        return text.substr(0, magic.size()) == magic.substr(0, text.size());
    };
    return begins(eddy::cache::rdb::magic_of_redis) || begins(eddy::cache::rdb::magic_of_valkey);
}

/// Session of the file's commands, with a master's rights.
struct file_session final : eddy::cache::client_session {
    explicit file_session(eddy::cache::engine& home) : client_session(home, internal{}) {
        special = master;
        address = "append-only file";
    }
    void strayed(std::string_view command) override { stray = command; }

    std::string stray;  // a command that no server writes there
};

class part_loader {
public:
    part_loader(eddy::cache::engine& to, const std::string& path, serving::journal& events)
        : engine_(to), path_(path), events_(events), session_(to), parser_(limits_of_trusted()) {}

    /// Appends bytes of the file; an incomplete command is kept.
    void add(std::string_view bytes) { rest_.append(bytes); }
    /// Executes a slice. True when there may be more to execute before bytes are added.
    bool step() {
        try {
            return in_rdb() ? step_rdb() : step_commands();
        } catch (const std::bad_alloc&) {
            wrong_ = "there is no memory for what follows";
            return false;
        }
    }
    /// At the end of the file.
    void finish() {
        if (in_rdb() && rdb_) {
            rdb_->finish();
            note_rdb_fault();
        }
    }

    bool is_wrong() const noexcept { return !wrong_.empty(); }
    /// The file ends within a command or a transaction.
    bool is_cut() const noexcept { return !rest_.empty() || in_transaction(); }
    std::uint64_t good() const noexcept { return in_transaction() ? transaction_at_ : offset_; }
    std::uint64_t offset() const noexcept { return offset_; }
    const std::string& wrong() const noexcept { return wrong_; }
    bool is_unknown_format() const noexcept { return is_unknown_format_; }
    /// A base in RDB is of use as a whole alone, and of what begins with the fault nothing is left.
    remedy how_to_mend() const noexcept {
        return kind_ == kind::commands && good() > 0 ? remedy::cut : remedy::another;
    }
    append_counts counts;

private:
    enum class kind : std::uint8_t { unknown, rdb, commands };

    bool in_rdb() const noexcept { return kind_ != kind::commands; }
    bool in_transaction() const noexcept {
        return (session_.special & eddy::cache::client_session::in_transaction) != 0;
    }

    bool step_rdb() {
        if (kind_ == kind::unknown) {
            if (!may_be_rdb(rest_.text())) {
                kind_ = kind::commands;
                return true;
            }
            if (rest_.size() < eddy::cache::rdb::magic_of_valkey.size()) return false;
            kind_ = kind::rdb;
            eddy::cache::rdb::load_options options;
            // Commands behind the snapshot may extend a key's TTL.
            options.keep_expired = true;
            rdb_.emplace(engine_, options);
        }
        const std::size_t taken = rdb_->feed(rest_.text().substr(0, slice_bytes));
        offset_ += taken;
        rest_.consume(taken);
        if (rdb_->now() == reader::status::done) {
            rdb_.reset();
            kind_ = kind::commands;
            return true;
        }
        note_rdb_fault();
        return !is_wrong() && !rest_.empty();
    }

    void note_rdb_fault() {
        if (rdb_->now() != reader::status::failed) return;
        offset_ = rdb_->fault().offset;
        wrong_ = rdb_->fault().what;
        is_unknown_format_ = rdb_->fault().is_unknown_format;
    }

    bool step_commands() {
        std::size_t bytes = 0;
        for (std::size_t n = 0; n < slice_commands && bytes < slice_bytes; ++n) {
            // One that takes its time, in slices.
            if (engine_.script_is_late()) {
                engine_.go_on();
                return true;
            }
            const std::string_view text = rest_.text();
            if (text.empty()) return false;
            // Redis's notes, such as the time.
            if (!parser_.in_progress() && text[0] == '#') {
                const std::size_t end = text.find('\n');
                if (end == std::string_view::npos) return false;
                drop(end + 1);
                continue;
            }
            if (text[0] != '*') {
                wrong_ = "a command is to begin here, with an asterisk";
                return false;
            }
            const resp::request_outcome parsed = parser_.next(text);
            if (parsed.status == resp::parse_status::error) {
                wrong_ = parsed.error;
                return false;
            }
            if (parsed.status == resp::parse_status::need_more) {
                drop(parsed.consumed);
                return false;
            }
            if (!execute(parsed.request)) return false;
            bytes += parsed.consumed;
            drop(parsed.consumed);
        }
        return true;
    }

    void drop(std::size_t bytes) {
        offset_ += bytes;
        rest_.consume(bytes);
    }

    bool execute(const resp::command& what) {
        const std::uint64_t errors = engine_.stats().errors;
        const bool began = in_transaction();
        out_.clear();
        const std::size_t executed = engine_.execute(session_, {&what, 1}, out_);
        if (engine_.script_is_late()) {
            ++counts.commands;
            return true;
        }
        if (!session_.stray.empty()) {
            wrong_ = fmt::format("it has '{}', which no server writes there", session_.stray);
            return false;
        }
        if (executed == 0 || session_.blocked) {
            wrong_ = "it has a command that waits for something";
            return false;
        }
        ++counts.commands;
        if (!began) transaction_at_ = offset_;
        if (engine_.stats().errors == errors) return true;
        ++counts.refused;
        const std::string_view reply = out_.text().substr(0, out_.text().find('\r'));
        if (reply.starts_with("-ERR unknown command")) {
            wrong_ = fmt::format("{}", reply.substr(1, 200));
            return false;
        }
        if (counts.refused <= most_reported)
            events_.write(fmt::format("{}: the command at byte {} had no effect: {}", path_,
                                      offset_, reply.substr(0, 200)));
        return true;
    }

    eddy::cache::engine& engine_;
    const std::string& path_;
    serving::journal& events_;
    file_session session_;
    resp::request_parser parser_;
    byte_buffer rest_;
    byte_buffer out_;
    kind kind_ = kind::unknown;
    std::optional<loader> rdb_;
    std::uint64_t offset_ = 0;
    std::uint64_t transaction_at_ = 0;
    std::string wrong_;
    bool is_unknown_format_ = false;
};

/// Quotes a text as an argument of a shell's command.
std::string shell_word(const std::string& text) {
    constexpr std::string_view plain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+,:@%=";
    if (text.find_first_not_of(plain) == std::string::npos) return text;
    std::string quoted = "'";
    for (const char c : text) {
        if (c == '\'')
            quoted += "'\\''";
        else
            quoted += c;
    }
    return quoted + "'";
}

std::unexpected<problem> damaged(const std::string& path, std::uint64_t offset,
                                 std::string_view why, const part_loader& in, append_place place) {
    std::string text =
        in.is_unknown_format()
            ? fmt::format("could not load {}: {}. ", path, why)
            : fmt::format("could not load {}: it is wrong at byte {}: {}. ", path, offset, why);
    text += "The file was left as it is: put a good copy in its place, or ";
    // A later file was made from the state that a cut would drop.
    if (in.how_to_mend() == remedy::cut && place != append_place::followed)
        text += fmt::format(
            "make a copy of it and drop everything from byte {} on with: "
            "truncate --size={} {}",
            in.good(), in.good(), shell_word(path));
    else
        text += fmt::format("move the folder {} away to begin without it",
                            path.substr(0, path.rfind('/')));
    return refuse(500, std::move(text));
}

}  // namespace

task<outcome<append_counts>> load_append_part(eddy::cache::engine& to, std::string path,
                                              append_place place, serving::journal& events) {
    result<file> opened = co_await file::open_regular(path, O_RDWR);
    if (!opened) co_return disk_problem("open", path, opened.error());
    const result<std::uint64_t> size = co_await opened->size();
    if (!size) co_return disk_problem("read", path, size.error());

    cancel_source* const source = co_await current_source();
    loop& here = loop::current();
    time_point reported = here.now();
    part_loader into(to, path, events);
    // Added to the bytes of the parts before.
    eddy::cache::engine_files files(to);
    const std::uint64_t loaded_before = files.loaded_bytes();
    std::vector<char> buffer(request_bytes);
    std::uint64_t read = 0;
    for (;;) {
        const result<std::size_t> got =
            co_await opened->read_at(read, std::as_writable_bytes(std::span(buffer)));
        if (!got) co_return disk_problem("read", path, got.error());
        if (*got == 0) break;
        read += *got;
        into.add({buffer.data(), *got});
        while (into.step()) {
            files.set_loaded_bytes(loaded_before + into.offset());
            // Memory of replaced and deleted keys must not pile up until the end.
            static_cast<void>(to.upkeep());
            co_await here.yield();
            if (source != nullptr && source->requested())
                co_return refuse(503, "the cache is stopping");
        }
        files.set_loaded_bytes(loaded_before + into.offset());
        if (into.is_wrong()) break;
        if (here.now() - reported >= report_pause) {
            reported = here.now();
            events.write(fmt::format("loading {}: {} of {} bytes", path, read, *size));
        }
    }
    if (!into.is_wrong()) into.finish();
    if (into.is_wrong()) co_return damaged(path, into.offset(), into.wrong(), into, place);
    append_counts counts = into.counts;
    counts.size = into.good();
    if (!into.is_cut()) co_return counts;
    if (place != append_place::cuttable)
        co_return damaged(path, into.good(), "it ends within a command, or within a transaction",
                          into, place);
    counts.cut_off = read - counts.size;
    const result<> cut = co_await opened->truncate(counts.size);
    if (!cut) co_return disk_problem("cut", path, cut.error());
    const result<> synced = co_await opened->sync();
    if (!synced) co_return disk_problem("cut", path, synced.error());
    events.write(
        fmt::format("{} ended within a command or a transaction: its last {} bytes, from "
                    "byte {}, were cut off",
                    path, counts.cut_off, counts.size));
    co_return counts;
}

}  // namespace eddy::runtime::cache
