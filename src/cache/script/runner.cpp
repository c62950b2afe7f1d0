// Calls of scripts: limits, commands, suspension.
#include "cache/script/runner.hpp"

#include <eddy/base/assert.hpp>

#include "base/text/text.hpp"
#include "cache/acl/access.hpp"
#include "cache/catalog/command_names.hpp"
#include "cache/catalog/command_table.hpp"
#include "cache/catalog/commands.hpp"
#include "cache/clients/messages.hpp"
#include "cache/clients/serving.hpp"
#include "cache/clients/session_extras.hpp"
#include "cache/clients/tracking.hpp"
#include "cache/clients/waits.hpp"
#include "cache/engine/engine.hpp"
#include "cache/engine/execution.hpp"
#include "cache/engine/running.hpp"
#include "cache/persistence/persistence.hpp"
#include "cache/persistence/propagation.hpp"
#include "cache/replication/replication.hpp"
#include "cache/script/script_text.hpp"
#include "cache/script/values.hpp"
#include "lua/errors.hpp"

#include <algorithm>
#include <chrono>
#include <new>
#include <thread>
#include <utility>

namespace eddy::cache {
namespace {

constexpr std::int64_t ms_ns = 1'000'000;
// Simulated time between two readings, without a clock.
constexpr std::int64_t look_takes_ns = 50'000;
// Maximum length of the text of an error that is not a table.
constexpr std::size_t max_plain_error = 100;
constexpr std::size_t kept_buffer = 64 * 1024;

void clear(byte_buffer& buffer) {
    buffer.clear();
    if (buffer.capacity() > kept_buffer) buffer = byte_buffer();
}

// Argument of run_job().
struct job {
    script_runner& by;
    call& c;
    const script_call& what;
};

// Steps counted for a command: by its arguments and reply if these bound its work, else enough for
// a reading of the clock.
std::size_t steps_of(std::uint64_t flags, std::span<const std::string_view> args,
                     std::size_t reply_bytes) noexcept {
    constexpr std::uint64_t bounded = command_flag::fast | command_flag::brief;
    if ((flags & bounded) == 0 || args.size() > slow_log::few_arguments)
        return lua::instructions_a_look;
    constexpr std::size_t least = 40;
    std::size_t bytes = reply_bytes;
    for (const std::string_view each : args) bytes += each.size();
    return least + bytes / lua::bytes_a_step;
}

// The text of a field of the table on top; empty without one.
std::string field_text(lua::stack in, const char* name) {
    in.rawgetfield(-1, name);
    std::string text;
    if (in.isstring(-1)) text = in.tostring(-1);
    in.pop();
    return text;
}

// The error must be on top.
void reply_with_error(call& c, lua::stack in, const script_call& what) {
    if (!in.istable(-1)) {
        std::string_view text = "execution failure";
        if (in.isstring(-1)) text = in.tostring(-1);
        text = text.substr(0, std::min(text.find('\0'), max_plain_error));
        c.error("ERR Error running script " + std::string(what.name) + ", " + std::string(text));
        return;
    }
    const bool is_counted = is_counted_error(in);
    std::string message = field_text(in, "err");
    if (message.empty()) message = "ERR unknown error";
    const std::string source = field_text(in, "source");
    const std::string line = field_text(in, "line");
    if (!source.empty() && !line.empty()) {
        message += " script: " + std::string(what.name) + ", on " + source + ":" + line + ".";
    }
    reply_with_script_error(c, std::move(message), is_counted);
}

// Protected call: errors raised here are caught nowhere else.
int run_job(lua_State* raw) {
    const lua::stack in(raw);
    const job& todo = *static_cast<job*>(in.touserdata(1));
    call& c = todo.c;
    const script_call& what = todo.what;
    in.settop(0);
    in.pushcclosure(lua::note_error);
    const std::string_view* const keys = c.args + what.first_key;
    int given = 0;
    if (what.is_function) {
        in.getref(what.function);
        in.pushstrings(keys, what.keys);
        in.pushstrings(keys + what.keys, what.arguments);
        given = 2;
    } else {
        in.pushstrings(keys, what.keys);
        lua::sandbox::set_global(in, "KEYS");
        in.pushstrings(keys + what.keys, what.arguments);
        lua::sandbox::set_global(in, "ARGV");
        in.getref(what.function);
    }
    if (!in.pcall(given, 1, 1)) {
        reply_with_error(c, in, what);
    } else {
        reply_with_value(c, in, todo.by.own_session().protocol > 2);
    }
    return 0;
}

}  // namespace

script_runner::own::own(engine& home) : client_session(home, internal{}) { address = "lua"; }

script_runner::script_runner(engine& home) : state_(home.internals()), session_(home) {}

script_runner::~script_runner() { EDDY_ASSERT(!is_late()); }

/// Scope in which a script is the running one; ends however the script ends.
class script_runner::running_mark {
public:
    running_mark(script_runner& in, const script_call& what, call& c) noexcept
        : in_(in), machine_(*what.in), height_(machine_.values().gettop()) {
        in_.running_ = &what;
        in_.running_call_ = &c;
    }
    ~running_mark() {
        machine_.values().settop(height_);
        if (in_.killed_) machine_.check_always(false);
        in_.killed_ = in_.is_busy_ = false;
        in_.running_ = nullptr;
        in_.running_call_ = nullptr;
        in_.running_command_.clear();
        clear(in_.command_reply_);
    }
    running_mark(const running_mark&) = delete;
    running_mark& operator=(const running_mark&) = delete;

private:
    script_runner& in_;
    lua::sandbox& machine_;
    int height_;
};

void script_runner::run(call& c, const script_call& what) {
    const engine_options& options = state_.settings.options;
    is_stale_ = is_stale(state_, c.client);
    if (is_stale_ && (what.flags & script_flag::unsaid) != 0) return c.error(stale_text);
    memory_is_short_ = options.max_memory != 0 && !state_.make_room();
    if ((what.flags & script_flag::unsaid) == 0 && (what.flags & script_flag::no_writes) == 0) {
        if (what.read_only) {
            return c.error("ERR Can not execute a script with write flag using *_ro command.");
        }
        if (!refusal_by_mode(options.mode, command_flag::write).empty() ||
            is_read_only_replica(state_, c.client)) {
            return c.error("READONLY You can not run script with write flag on readonly replica.");
        }
        if (memory_is_short_ && (what.flags & script_flag::allow_oom) == 0) {
            return c.error("OOM command not allowed when used memory > 'maxmemory'.");
        }
    }
    if (is_stale_ && (what.flags & (script_flag::unsaid | script_flag::allow_stale)) == 0) {
        return c.error(
            "MASTERDOWN Link with MASTER is down, replica-serve-stale-data is set to 'no' and "
            "'allow-stale' flag is not set on the script.");
    }
    script_call mine = what;
    if ((what.flags & script_flag::unsaid) == 0) {
        mine.read_only |= (what.flags & script_flag::no_writes) != 0;
    }
    const running_mark mark(*this, mine, c);
    has_written_ = false;
    killed_ = abandoned_;
    began_ns_ = clock_ns();
    // Within a transaction the slice continues.
    if (slice_ends_ns_ == 0) begin_slice();
    session_.db = c.client.db;
    session_.protocol = 2;
    session_.user = c.client.user;
    session_.unlimited = c.client.unlimited;
    job todo{*this, c, mine};
    if (!what.in->call_protected(run_job, &todo)) {
        const lua::stack in = what.in->values();
        c.reply.buffer().truncate(c.reply_begin);
        reply_with_error(c, in, mine);
        in.pop();
    }
    what.in->collect_if_full();
}

/// The command with that name, if a script may call it in this form, and the form's flags; else
/// null, and the reason in `why`.
const command_spec* script_runner::find_callable(const std::string_view* args, std::size_t count,
                                                 std::uint64_t& flags,
                                                 std::string_view& why) const {
    constexpr std::string_view unknown = "Unknown Redis command called from script";
    constexpr std::string_view wrong_arity =
        "Wrong number of args calling Redis command from script";
    const auto refuse = [&why](std::string_view text) -> const command_spec* {
        why = text;
        return nullptr;
    };
    const command_spec* const spec =
        find_named(state_.settings.renamed.get(), fold_command_name(args[0]));
    if (spec == nullptr) return refuse(unknown);
    if (!arity_fits(*spec, count)) return refuse(wrong_arity);
    flags = spec->flags;
    if ((flags & command_flag::has_forms) != 0 && count > 1) [[unlikely]] {
        const command_spec* const form = find_form(*spec, args[1]);
        if (form == nullptr) return refuse(unknown);
        if (!arity_fits(*form, count)) return refuse(wrong_arity);
        flags = form->flags;
    }
    constexpr std::uint64_t special = command_flag::noscript | command_flag::dangerous;
    const bool is_allowed = state_.scripts_call_debug && (flags & command_flag::debugs) != 0 &&
                            state_.settings.options.mode == access_mode::admin;
    if ((flags & special) != 0 && !is_allowed) [[unlikely]] {
        return refuse("This Redis command is not allowed from script");
    }
    if (is_stale_ && (flags & command_flag::stale) == 0) [[unlikely]] {
        return refuse("Can not execute the command on a stale replica");
    }
    return spec;
}

/// Reason why this script must not call a command with these flags, which writes or may replicate;
/// empty if it may.
std::string_view script_runner::refusal_of_write(std::uint64_t flags) const {
    if (running_->read_only) return "Write commands are not allowed from read-only scripts.";
    if ((flags & command_flag::write) == 0) return {};
    const client_session& client = running_call_->client;
    if (!refusal_by_mode(state_.settings.options.mode, flags).empty() &&
        (client.special & client_session::master) == 0)
        return readonly_mode_error;
    if (is_read_only_replica(state_, client))
        return "-READONLY You can't write against a read only replica.";
    if (!has_written_ && lacks_replicas(state_))
        return "-NOREPLICAS Not enough good replicas to write.";
    return {};
}

void script_runner::run_command(call& inner, const command_spec& spec) {
    const std::uint8_t db = session_.db;
    constexpr auto seen = slow_path::propagates | slow_path::replica | slow_path::pause;
    if ((state_.clients.slow_path & seen) == 0) {
        run_and_count(inner);
        return;
    }
    const expiry_scope expiry(inner);
    recording record(state_, spec);
    run_and_count(inner);
    record.end({inner.args, inner.count}, db);
}

std::string_view script_runner::execute(const std::string_view* args, std::size_t count,
                                        std::string_view& refusal) {
    const auto refuse = [this, &refusal](std::string_view text) {
        refusal = text;
        state_.count_error(text.starts_with('-') ? text.substr(1) : "ERR ");
        return std::string_view();
    };
    std::uint64_t flags = 0;
    std::string_view why;
    const command_spec* const spec = find_callable(args, count, flags, why);
    if (spec == nullptr) return refuse(why);
    command_reply_.clear();
    resp::reply_writer reply(command_reply_, session_.protocol);
    call inner{state_, session_, reply, &state_.data.database(session_.db)};
    inner.spec = spec;
    inner.args = args;
    inner.count = count;
    inner.in_exec = true;
    inner.in_script = true;
    const auto reject = [&](std::string_view text) {
        inner.count_failure();
        inner.count_rejection();
        return refuse(text);
    };
    if (!session_.unlimited && !permits(inner)) [[unlikely]] {
        inner.count_rejection();
        constexpr std::string_view code = "-NOPERM ";
        const std::string reason(command_reply_.text().substr(code.size()));
        command_reply_.clear();
        command_reply_.append("-NOPERM ACL failure in script: " + reason);
        return command_reply_.text();
    }
    if ((flags & (command_flag::write | command_flag::may_replicate)) != 0) {
        why = refusal_of_write(flags);
        if (!why.empty()) return reject(why);
    }
    if ((flags & command_flag::write) != 0) {
        if (!has_written_ && (running_call_->client.special & client_session::master) == 0) {
            const std::string trouble = save_trouble_text(state_);
            if (!trouble.empty()) {
                inner.error(trouble);
                inner.count_rejection();
                return command_reply_.text();
            }
        }
        if (memory_is_short_ && (flags & command_flag::denyoom) != 0 && !has_written_ &&
            (running_->flags & script_flag::allow_oom) == 0) {
            return reject("-OOM command not allowed when used memory > 'maxmemory'.");
        }
        has_written_ = true;
    }
    if (spec->first_key == 1 && count > 1) inner.hash = state_.data.env.hash(args[1]);
    run_command(inner, *spec);
    retire_closed(state_);
    executed_steps_ = steps_of(flags, {args, count}, command_reply_.size());
    if ((running_call_->client.special & client_session::tracking) != 0) [[unlikely]]
        remember_reads(*running_call_, *spec, {args, count});
    ++state_.data.env.counters.commands;
    if ((state_.clients.slow_path & slow_path::monitors) != 0) [[unlikely]]
        feed_monitors(inner);
    return command_reply_.text();
}

void script_runner::count_executed(lua::stack in) {
    lua::sandbox::of(in).count_steps(in, std::exchange(executed_steps_, 0));
}

const command_spec* script_runner::find_named_command(std::string_view name) const noexcept {
    return find_named(state_.settings.renamed.get(), fold_command_name(name));
}

bool script_runner::may_run(const command_spec& what,
                            std::span<const std::string_view> args) const {
    return session_.unlimited || session_.user->check(what, args).why == acl::refusal::none;
}

void script_runner::on_fiber(call& c, void (*what)(call&)) {
    if (fiber_.is_inside()) return what(c);
    EDDY_ASSERT(!is_late());
    // Allocated now, as a late script needs them for its wait.
    static_cast<void>(extras_of(c.client));
    clear(reply_);
    writer_.emplace(reply_, c.reply.protocol());
    call_.emplace(call{c.state, c.client, *writer_, c.keys});
    call_->spec = c.spec;
    call_->args = c.args;
    call_->count = c.count;
    call_->hash = c.hash;
    call_->executed_in_batch = c.executed_in_batch;
    call_->in_exec = c.in_exec;
    body_ = what;
    changes_before_ = state_.data.changes;
    slice_ends_ns_ = 0;
    now_us_ = state_.data.env.now_us;
    const bool done = fiber_.start(
        [](void* self) {
            script_runner& me = *static_cast<script_runner*>(self);
            // On the fiber's own stack an exception would not be caught further down.
            try {
                me.body_(*me.call_);
            } catch (...) {
                me.lacked_memory_ = true;
            }
        },
        this);
    if (done && std::exchange(lacked_memory_, false)) {
        call_.reset();
        throw std::bad_alloc();
    }
    if (done) {
        c.keys = call_->keys;
        c.reply.set_protocol(writer_->protocol());
        c.reply.raw(reply_.text());
        call_.reset();
        return;
    }
    // The command's arguments end with it, but a script has copied the ones it needs, and the fiber
    // owns a transaction's commands.
    late_session_ = &c.client;
    state_.clients.slow_path |= slow_path::script;
    session_extras& extras = extras_of(c.client);
    extras.waits_for = wait_kind::script;
    extras.deadline_us = client_session::no_deadline;
    c.client.blocked = true;
    note_busy();
}

void script_runner::begin_slice() noexcept {
    const std::int64_t limit_ms = state_.settings.options.busy_reply_ms;
    const bool is_shorter = limit_ms != 0 && limit_ms < slice_ms;
    slice_ends_ns_ = began_ns_ + (is_shorter ? limit_ms : slice_ms) * ms_ns;
}

// After a slice. Compared in milliseconds: the limit may be any number of them.
void script_runner::note_busy() {
    const std::int64_t limit_ms = state_.settings.options.busy_reply_ms;
    // The pause of a transaction without a script does not count.
    if (running_ == nullptr || is_busy_ || limit_ms == 0 || running_ms() < limit_ms) return;
    is_busy_ = true;
    end_script_waits(state_, state_.clients.script_waits.size());
}

void script_runner::begin_load(lua::sandbox& in, std::int64_t max_ms) noexcept {
    load_is_over_ = false;
    load_ends_ns_ = clock_ns() + max_ms * ms_ns;
    in.check_always(false);
}

void script_runner::end_load(lua::sandbox& in) noexcept {
    load_is_over_ = false;
    load_ends_ns_ = 0;
    in.check_always(false);
}

void script_runner::check(lua::stack in) {
    if (load_ends_ns_ != 0) {
        if (look_ns() < load_ends_ns_) return;
        load_is_over_ = true;
        lua::sandbox::of(in).check_always(true);
        lua::raise_error(in, "FUNCTION LOAD timeout");
    }
    if (!killed_) check_quietly();
    if (!killed_) return;
    // From now on checked at every instruction: a pcall() in the script does not prevent its end.
    lua::sandbox::of(in).check_always(true);
    lua::raise_error(in, running_->is_function ? "Script killed by user with FUNCTION KILL."
                                               : "Script killed by user with SCRIPT KILL.");
}

void script_runner::check_quietly() {
    if (running_ == nullptr || !fiber_.is_inside()) return;
    if (look_ns() < slice_ends_ns_) return;
    if (running_command_.empty()) {
        const call& c = *running_call_;
        for (std::size_t i = 0; i < c.count; ++i) running_command_.emplace_back(c.arg(i));
    }
    fiber_.suspend();
}

void script_runner::go_on() {
    if (!is_late()) return;
    // Within a script time stands still, and output for its session is collected.
    const std::int64_t now_us = std::exchange(state_.data.env.now_us, now_us_);
    const std::int64_t now_ms = std::exchange(state_.data.env.now_ms, now_us_ / 1000);
    client_session* const outer = std::exchange(state_.clients.executing, late_session_);
    byte_buffer outer_pushes = std::exchange(state_.clients.own_pushes, std::move(late_pushes_));
    slice_ends_ns_ = clock_ns() + slice_ms * ms_ns;
    const bool done = fiber_.resume();
    late_pushes_ = std::exchange(state_.clients.own_pushes, std::move(outer_pushes));
    state_.clients.executing = outer;
    state_.data.env.now_us = now_us;
    state_.data.env.now_ms = now_ms;
    if (!done) return note_busy();
    if (std::exchange(lacked_memory_, false)) {
        clear(reply_);
        late_session_->closing = true;
    }
    finish_late();
}

void script_runner::finish_late() {
    client_session& who = *std::exchange(late_session_, nullptr);
    end_slow_path();
    session_extras& extras = *who.extras;
    const bool is_answered =
        (who.special & (client_session::reply_off | client_session::reply_skip)) == 0;
    const std::size_t reply_bytes = is_answered ? reply_.size() : 0;
    try {
        if (is_answered) extras.outbox.append(reply_.text());
        extras.outbox.append(late_pushes_.text());
    } catch (const std::bad_alloc&) {
        who.closing = true;
    }
    who.special &= static_cast<std::uint16_t>(~client_session::reply_skip);
    clear(late_pushes_);
    clear(reply_);
    end_late(*call_, reply_bytes);
    call_.reset();
    {
        // WAIT refers to this session's writes.
        client_session* const outer = std::exchange(state_.clients.executing, &who);
        if (is_cut_off()) {
            discard_unit(state_);
            if (has_changed()) note_half_script();
        } else {
            finish_unit(state_);
        }
        state_.clients.executing = outer;
    }
    forget_wait(state_, who);
    who.wake();
    // Before the client's next command.
    state_.clients.script_waits_ended_at_once = 1;
    if (holds_ == 0) end_script_waits_in_turn(state_);
    state_.note_obstacle_ended();
    // The client may have been killed meanwhile.
    if (who.closing)
        cache::kill(state_, who);
    else
        check_output(state_, who);
    retire_closed(state_);
    try {
        serve_waiting(state_);
        state_.clients.has_effects = false;
    } catch (const std::bad_alloc&) {
        // Left to the next command.
        state_.clients.has_effects = true;
    }
}

/// The keyspace holds partial changes of the script, and no file does. So waiting clients get none
/// of them, and later changes, which may depend on them, are not stored.
void script_runner::note_half_script() {
    state_.persistence.has_half_script = true;
    stop_propagation(state_);
    state_.clients.sessions.for_each([this](client_session& each) {
        if ((each.special & (client_session::master | client_session::replica)) == 0)
            cache::kill(state_, each);
    });
}

void script_runner::end_slow_path() noexcept {
    if (holds_ == 0 && late_session_ == nullptr)
        state_.clients.slow_path &= static_cast<std::uint16_t>(~slow_path::script);
}

void script_runner::let_begin() noexcept {
    if (--holds_ > 0) return;
    end_slow_path();
    if (!is_late()) end_script_waits(state_, state_.clients.script_waits.size());
}

void script_runner::pause(std::int64_t us) {
    // The loop serves other work in between, and does not spin.
    constexpr std::chrono::microseconds slice{200};
    if (!fiber_.is_inside() || state_.data.env.slice_time == nullptr) return;
    const std::int64_t ends_ns = clock_ns() + us * 1000;
    while (!abandoned_ && clock_ns() < ends_ns) {
        std::this_thread::sleep_for(slice);
        fiber_.suspend();
    }
}

void script_runner::forget(client_session& who) {
    if (late_session_ != &who) return;
    // The master's offset claims that all of it was executed.
    if ((who.special & client_session::master) != 0 && state_.replication.replicating != nullptr)
        state_.replication.replicating->cannot_resume();
    abandon();
}

void script_runner::cut_off() {
    if (late_session_ == nullptr) return;
    client_session& who = *late_session_;
    abandon();
    cache::kill(state_, who);
}

void script_runner::abandon() {
    abandoned_ = true;
    killed_ = true;
    while (is_late()) go_on();
    abandoned_ = false;
}

void script_runner::seed_random(lua::stack in) {
    lua::sandbox::of(in).seed_random(static_cast<std::uint32_t>(state_.data.env.random()));
}

std::int64_t script_runner::clock_ns() const noexcept {
    const slice_clock by = state_.data.env.slice_time;
    return by != nullptr ? by() : looked_ns_;
}

std::int64_t script_runner::look_ns() noexcept {
    looked_ns_ += look_takes_ns;
    return clock_ns();
}

std::int64_t script_runner::running_ms() const noexcept { return (clock_ns() - began_ns_) / ms_ns; }

}  // namespace eddy::cache
