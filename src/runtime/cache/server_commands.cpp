// Tasks of the commands about the server; each ends with a reply.
#include "runtime/cache/server_commands.hpp"

#include <eddy/io/file.hpp>
#include <eddy/io/loop.hpp>

#include "cache/acl/acl_file.hpp"
#include "cache/clients/engine_clients.hpp"
#include "cache/config/config.hpp"
#include "cache/config/engine_settings.hpp"
#include "cache/persistence/engine_files.hpp"
#include "cache/replication/replication.hpp"
#include "cache/script/script_gap.hpp"
#include "runtime/cache/clients/cache_worker.hpp"
#include "runtime/cache/config/options.hpp"
#include "runtime/cache/config/parameters.hpp"
#include "runtime/cache/files/cache_files.hpp"
#include "runtime/cache/files/dump_file.hpp"
#include "runtime/cache/replication/master_side.hpp"
#include "runtime/cache/replication/migrating.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <new>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::runtime::cache {
namespace {

constexpr std::string_view not_saved_text =
    "There was an error trying to save the ACLs. Please check the server logs for more information";
constexpr std::string_view not_shut_down_text = "Errors trying to SHUTDOWN. Check logs.";

/// Readable by the daemon's user alone: it has passwords, if only as digests.
constexpr mode_t users_mode = 0600;

task<result<>> write_whole(std::string path, std::string text) {
    const std::string temporary = temporary_of(path);
    static_cast<void>(co_await file::remove(temporary));
    result<> done;
    {
        result<file> opened =
            co_await file::open_regular(temporary, O_WRONLY | O_CREAT | O_EXCL, users_mode);
        if (!opened) co_return fail(opened.error());
        done = co_await opened->write_at(0, std::as_bytes(std::span(text)));
        if (done) done = co_await opened->sync();
    }
    if (done) done = co_await file::rename(temporary, path);
    if (!done) static_cast<void>(co_await file::remove(temporary));
    co_return done;
}

task<result<std::string>> read_whole(std::string path) {
    result<file> opened = co_await file::open_regular(path, O_RDONLY);
    if (!opened) co_return fail(opened.error());
    const result<std::uint64_t> size = co_await opened->size();
    if (!size) co_return fail(size.error());
    if (*size > eddy::cache::acl::max_file_bytes) co_return fail(errc::limit_reached);
    std::string text(static_cast<std::size_t>(*size), '\0');
    std::size_t have = 0;
    while (have < text.size()) {
        const result<std::size_t> got =
            co_await opened->read_at(have, std::as_writable_bytes(std::span(text).subspan(have)));
        if (!got) co_return fail(got.error());
        if (*got == 0) break;
        have += *got;
    }
    text.resize(have);
    co_return text;
}

/// Yields the reason for which the file could not be loaded, or an empty text.
task<std::string> take_users(eddy::cache::engine& to, std::string path) {
    const result<std::string> text = co_await read_whole(path);
    if (!text)
        co_return fmt::format("Error loading ACLs, opening file '{}': {}", path,
                              text.error().message());
    const auto loaded = eddy::cache::engine_clients(to).load_users(*text, path);
    co_return loaded ? std::string() : loaded.error();
}

/// A parameter that has an option of its own.
struct own_option {
    std::string_view parameter;
    const char* option;  // as JSON names it
};
constexpr own_option own_options[] = {
    {"maxclients", "max_connections"},
    {"maxmemory", "maxmemory"},
    {"maxmemory-clients", "maxmemory_clients"},
    {"protected-mode", "protected_mode"},
    {"timeout", "idle_timeout"},
};

/// Differences of the present role to the options that name a master.
nlohmann::json master_option_now(eddy::cache::engine& of, const nlohmann::json& options) {
    const auto* const its = eddy::cache::replication::find(of);
    nlohmann::json changed = nlohmann::json::object();
    if (its != nullptr && its->is_replica()) {
        const std::string& host = its->master_host();
        const bool is_ipv6 = host.find(':') != std::string::npos;
        changed["replicate"] = fmt::format("{}{}{}:{}", is_ipv6 ? "[" : "", host,
                                           is_ipv6 ? "]" : "", its->master_port());
        return changed;
    }
    // The user and password then stay as parameters, where they are needed.
    for (const char* const name : {"replicate", "replicate_user", "replicate_password"}) {
        if (options.contains(name)) changed[name] = nullptr;
    }
    return changed;
}

}  // namespace

server_commands::server_commands(cache_context& of, scope& background, settings& chosen,
                                 std::shared_ptr<host> above)
    : context_(of),
      engine_(of.engine),
      background_(background),
      events_(of.events),
      chosen_(chosen),
      above_(std::move(above)) {}

server_commands::~server_commands() { eddy::cache::engine_settings(engine_).drop_server(); }

void server_commands::change_settings(eddy::cache::server_settings now) {
    const eddy::cache::server_settings& before = context_.settings;
    const bool has_limits = now.max_clients != before.max_clients ||
                            now.client_timeout != before.client_timeout ||
                            now.max_query_buffer != before.max_query_buffer;
    context_.settings = std::move(now);
    if (has_limits) limits_changed();
}

void server_commands::limits_changed() noexcept { cache_worker::limits_changed(context_); }

void server_commands::answer(std::uint64_t session, std::string_view fault) {
    eddy::cache::engine_clients(engine_).answer(session, fault);
}

void server_commands::save_users(std::uint64_t session, std::string text) {
    background_.spawn(answered(session, save_users_there(session, std::move(text))));
}

void server_commands::load_users(std::uint64_t session) {
    background_.spawn(answered(session, load_users_there(session)));
}

void server_commands::keep_config(std::uint64_t session) {
    background_.spawn(answered(session, keep_config_there(session)));
}

void server_commands::shut_down(std::uint64_t session, eddy::cache::shutdown_request how) {
    ++shutdowns_;
    background_.spawn(answered(session, shut_down_there(session, how, shutdown_turn_)));
}

void server_commands::migrate(std::uint64_t session, std::unique_ptr<eddy::cache::migration> what) {
    background_.spawn(answered(session, migrate_keys(context_, session, std::move(what))));
}

/// Runs `work`, and replies to its session when there is no memory for it; no other client notices.
task<void> server_commands::answered(std::uint64_t session, task<void> work) {
    try {
        co_await std::move(work);
        co_return;
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): replied below
    }
    try {
        answer(session, "there is no memory for it");
        events_.write("a client's command about the server failed: there was no memory");
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): it times out
    }
}

task<void> server_commands::save_users_there(std::uint64_t session, std::string text) {
    co_await loop::current().yield();
    // The last one wins, and each is whole.
    result<permit> one_at_a_time = co_await users_file_.lock();
    if (!one_at_a_time) co_return;
    const std::string path = context_.settings.acl_file;
    const result<> done = co_await write_whole(path, std::move(text));
    one_at_a_time->release();
    if (!done)
        events_.write(
            fmt::format("ACL SAVE: could not write {}: {}", path, done.error().message()));
    answer(session, done ? std::string_view() : not_saved_text);
}

task<void> server_commands::load_users_there(std::uint64_t session) {
    co_await loop::current().yield();
    const std::string fault = co_await take_users(engine_, context_.settings.acl_file);
    if (!fault.empty()) events_.write("ACL LOAD: " + fault);
    answer(session, fault);
}

task<void> server_commands::keep_config_there(std::uint64_t session) {
    co_await loop::current().yield();
    // Options without the parameters that were kept before.
    nlohmann::json options = chosen_.to_json();
    options.erase("config");
    // The master, or that there is none: REPLICAOF may have changed that.
    nlohmann::json changed = master_option_now(engine_, options);
    options.merge_patch(changed);
    const std::vector<option> table = table_of(option_rows());
    auto plain = settings::parse(table, options);
    auto from = plain ? read_config(*plain) : std::unexpected(plain.error());
    if (!from) co_return answer(session, "Rewriting config file: " + from.error().message);
    const eddy::cache::engine_options& now = engine_.options();

    parameter_list others;
    for (const auto& [name, value] :
         eddy::cache::changed_parameters({now, context_.settings}, {from->engine, from->server})) {
        const char* own = nullptr;
        for (const own_option& each : own_options) {
            if (each.parameter == name) own = each.option;
        }
        if (name == "maxmemory-policy" && now.max_memory != 0) {
            changed["eviction"] = value == "noeviction" ? "none" : value;
        } else if (name == "save" && !context_.settings.dir.empty()) {
            changed["save"] = value.empty() ? "off" : value;
        } else if (own != nullptr) {
            changed[own] = value;
        } else {
            others.emplace_back(name, value);
        }
    }
    changed["config"] = others.empty() ? nlohmann::json() : nlohmann::json(join_parameters(others));
    nlohmann::json all = chosen_.to_json();
    all.merge_patch(changed);
    auto next = settings::parse(table, all);
    outcome<> kept = next ? outcome<>() : std::unexpected(next.error());
    if (kept) kept = co_await above_->keep_options(std::move(changed));
    if (!kept) {
        events_.write("CONFIG REWRITE: " + kept.error().message);
        co_return answer(session, "Rewriting config file: " + kept.error().message);
    }
    // The next time only later changes are passed.
    chosen_ = std::move(*next);
    events_.write("CONFIG REWRITE: the settings are kept for the next start");
    answer(session, {});
}

/// Yields the reason for which not everything could be saved, or an empty text.
task<std::string> server_commands::save_before_end(eddy::cache::shutdown_request how,
                                                   std::uint64_t turn, duration patience) {
    const eddy::cache::engine_files files(engine_);
    const bool is_wanted = how.saves == saving::always || (how.saves == saving::by_points &&
                                                           !engine_.options().save_points.empty());
    if (is_wanted && files.has_writer() && !files.is_loading() && files.lacks_data())
        co_return "it has not got its master's data";
    last_save last;
    last.wanted = how.saves;
    last.even_unchanged = true;
    last.patience = patience;
    last.is_given_up = [this, turn] { return turn != shutdown_turn_; };
    const outcome<> saved = co_await save_all(context_, std::move(last));
    co_return saved ? std::string() : saved.error().message;
}

task<void> server_commands::shut_down_there(std::uint64_t session,
                                            eddy::cache::shutdown_request how, std::uint64_t turn) {
    co_await loop::current().yield();
    const auto given_up = [this, turn] { return turn != shutdown_turn_; };
    std::string fault;
    try {
        const duration limit = std::chrono::seconds(context_.settings.replica.shutdown_timeout_s);
        if (!how.at_once && !given_up()) co_await await_replicas(context_, limit, given_up);
        if (!given_up()) fault = co_await save_before_end(how, turn, limit);
    } catch (const std::bad_alloc&) {
        fault = "no memory";
    }
    if (given_up() || (!fault.empty() && !how.forced)) {
        if (!given_up()) {
            events_.write("SHUTDOWN: " + fault);
            // None is counted once another one has asked for the stop.
            if (shutdowns_ > 0 && --shutdowns_ == 0)
                eddy::cache::engine_clients(engine_).let_write(eddy::cache::write_hold::shutdown);
        }
        co_return answer(session, not_shut_down_text);
    }
    events_.write("SHUTDOWN: a client has requested the stop");
    at_end_ = how.saves;
    is_forced_ = how.forced;
    stopping_ = session;
    shutdowns_ = 0;
    // The session waits until its connection is closed, or stop_refused().
    above_->request_stop();
}

void server_commands::stop_refused() noexcept {
    if (shutdowns_ == 0)
        eddy::cache::engine_clients(engine_).let_write(eddy::cache::write_hold::shutdown);
    at_end_ = saving::by_points;
    is_forced_ = false;
    const std::uint64_t session = std::exchange(stopping_, 0);
    if (session == 0) return;
    try {
        answer(session, not_shut_down_text);
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): it times out
    }
}

bool server_commands::abort_shutdown() {
    if (shutdowns_ == 0) return false;
    shutdowns_ = 0;
    ++shutdown_turn_;
    context_.progress.set();
    eddy::cache::engine_clients(engine_).let_write(eddy::cache::write_hold::shutdown);
    return true;
}

task<outcome<>> load_users(eddy::cache::engine& to, std::string path) {
    const std::string fault = co_await take_users(to, std::move(path));
    if (fault.empty()) co_return outcome<>();
    co_return refuse(400, fmt::format("the users of --aclfile could not be loaded: {}. Mend the "
                                      "file; an empty one will do to begin with",
                                      fault));
}

}  // namespace eddy::runtime::cache
