// Running scripts, and their cache.
#include "cache/script/scripts.hpp"

#include <eddy/base/assert.hpp>

#include "base/text.hpp"
#include "cache/acl/access.hpp"
#include "cache/catalog/acl_forms.hpp"
#include "cache/catalog/command_names.hpp"
#include "cache/catalog/command_table.hpp"
#include "cache/catalog/commands.hpp"
#include "cache/clients/messages.hpp"
#include "cache/clients/session_extras.hpp"
#include "cache/clients/tracking.hpp"
#include "cache/clients/waits.hpp"
#include "cache/engine/execution.hpp"
#include "cache/persistence/persistence.hpp"
#include "cache/persistence/propagation.hpp"
#include "cache/replication/replication.hpp"
#include "cache/script/functions.hpp"
#include "cache/script/script_text.hpp"
#include "cache/script/scripting.hpp"
#include "cache/script/values.hpp"
#include "cache/engine/dataset_digest.hpp"

#include <lua.hpp>

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

namespace eddy::cache {
namespace {

constexpr std::int64_t ms_ns = 1'000'000;
// What passes between two looks at the clock, where no clock is to be looked at.
constexpr std::int64_t look_takes_ns = 50'000;
constexpr std::size_t kept_buffer = 64 * 1024;

void clear(byte_buffer& buffer) {
    buffer.clear();
    if (buffer.capacity() > kept_buffer) buffer = byte_buffer();
}

// What run_protected() works with.
struct job {
    call& c;
    const scripts::task& what;
};

// What a command may have taken: as much as its arguments and reply suggest where its work is
// bounded by them, else enough for a look at the clock.
std::size_t steps_of(std::uint32_t flags, std::span<const std::string_view> args,
                     std::size_t reply_bytes) noexcept {
    constexpr std::uint32_t bounded = command_flag::fast | command_flag::brief;
    if ((flags & bounded) == 0 || args.size() > slow_log::few_arguments) return instructions_a_look;
    constexpr std::size_t least = 40;
    std::size_t bytes = reply_bytes;
    for (const std::string_view each : args) bytes += each.size();
    return least + bytes / bytes_a_step;
}

void push_list(lua_State* in, const std::string_view* of, std::size_t count) {
    lua_createtable(in, static_cast<int>(count), 0);
    for (std::size_t i = 0; i < count; ++i) {
        lua_pushlstring(in, of[i].data(), of[i].size());
        lua_rawseti(in, -2, static_cast<int>(i + 1));
    }
}

// The text of a field of the table on top; empty when it has none.
std::string field_text(lua_State* in, const char* name) {
    lua_pushstring(in, name);
    lua_rawget(in, -2);
    std::string text;
    if (lua_isstring(in, -1) != 0) {
        std::size_t size = 0;
        const char* const bytes = lua_tolstring(in, -1, &size);
        text.assign(bytes, size);
    }
    lua_pop(in, 1);
    return text;
}

// The error is on top.
void reply_with_error(call& c, lua_State* in, const scripts::task& what) {
    if (!lua_istable(in, -1)) {
        const char* const text = lua_tostring(in, -1);
        c.error("ERR Error running script " + std::string(what.name) + ", " +
                std::string(text != nullptr ? text : "execution failure").substr(0, 100));
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

// Called by lua_cpcall: what is raised here has nobody else to catch it.
int run_protected(lua_State* in) {
    const job& todo = *static_cast<job*>(lua_touserdata(in, 1));
    call& c = todo.c;
    const scripts::task& what = todo.what;
    lua_settop(in, 0);
    lua_pushcfunction(in, note_error);
    const std::string_view* const keys = c.args + what.first_key;
    int given = 0;
    if (what.is_function) {
        lua_rawgeti(in, LUA_REGISTRYINDEX, what.function);
        push_list(in, keys, what.keys);
        push_list(in, keys + what.keys, what.arguments);
        given = 2;
    } else {
        push_list(in, keys, what.keys);
        set_global(in, "KEYS");
        push_list(in, keys + what.keys, what.arguments);
        set_global(in, "ARGV");
        lua_rawgeti(in, LUA_REGISTRYINDEX, what.function);
    }
    if (lua_pcall(in, given, 1, 1) != 0) {
        reply_with_error(c, in, what);
    } else {
        reply_with_value(c, in);
    }
    return 0;
}

}  // namespace

scripts::own::own(engine& home) : session(home, internal{}) { address = "lua"; }

scripts::scripts(engine& home)
    : state_(home.internals()),
      session_(home),
      eval_(*this, vm::purpose::eval, state_.options.max_script_memory) {}

scripts::~scripts() {
    EDDY_ASSERT(!is_late());
    while (!evictable_.empty()) evictable_.pop_front();
}

libraries& scripts::functions() {
    if (functions_ == nullptr) functions_ = std::make_unique<libraries>(*this);
    return *functions_;
}

// --- The cache -------------------------------------------------------------------------------

scripts::cached* scripts::find(std::string_view name) noexcept {
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) return nullptr;
    cached& it = *found->second;
    if (!it.loaded) {
        it.unlink();
        evictable_.push_back(it);
    }
    return &it;
}

scripts::cached* scripts::add(call& c, std::string_view text, bool loaded) {
    if (text.size() > max_cached_bytes) {
        c.error("ERR the script is longer than the cache of scripts may be");
        return nullptr;
    }
    const std::string name = hexadecimal(sha1(text));
    if (cached* const known = find(name)) {
        if (loaded && !known->loaded) {
            known->unlink();
            known->loaded = true;
        }
        return known;
    }
    const script_head head = take_script_head(text, false);
    if (!head.refusal.empty()) {
        c.error("ERR " + head.refusal);
        return nullptr;
    }
    while ((cached_bytes_ + text.size() > max_cached_bytes || by_name_.size() >= max_cached) &&
           !evictable_.empty()) {
        remove(evictable_.front());
    }
    if (loaded &&
        (cached_bytes_ + text.size() > max_cached_bytes || by_name_.size() >= max_cached)) {
        c.error("ERR the cache of scripts is full: SCRIPT FLUSH empties it");
        return nullptr;
    }
    std::string why;
    const int function = eval_.compile(head.rest, "@user_script", why);
    if (function == 0) {
        c.error("ERR Error compiling script (new function): " + why);
        return nullptr;
    }
    auto made = std::make_unique<cached>();
    made->name = name;
    made->text = text;
    made->function = function;
    made->flags = head.flags;
    made->loaded = loaded;
    cached* const kept = by_name_.emplace(name, std::move(made)).first->second.get();
    cached_bytes_ += text.size();
    if (!loaded) evictable_.push_back(*kept);
    return kept;
}

void scripts::remove(cached& gone) {
    gone.unlink();
    eval_.forget(gone.function);
    cached_bytes_ -= gone.text.size();
    by_name_.erase(by_name_.find(gone.name));
}

void scripts::flush() {
    while (!evictable_.empty()) evictable_.pop_front();
    by_name_.clear();
    cached_bytes_ = 0;
    eval_.reset();
}

// --- Running ---------------------------------------------------------------------------------

/// Which script runs, until it has ended in whatever way.
class scripts::running_mark {
public:
    running_mark(scripts& in, const task& what, call& c) noexcept
        : in_(in), machine_(what.in->state()), height_(lua_gettop(machine_)) {
        in_.running_ = &what;
        in_.running_call_ = &c;
    }
    ~running_mark() {
        lua_settop(machine_, height_);
        if (in_.killed_) vm::of(machine_).look_always(false);
        in_.killed_ = in_.is_busy_ = false;
        in_.running_ = nullptr;
        in_.running_call_ = nullptr;
        in_.running_command_.clear();
        clear(in_.command_reply_);
    }
    running_mark(const running_mark&) = delete;
    running_mark& operator=(const running_mark&) = delete;

private:
    scripts& in_;
    lua_State* machine_;
    int height_;
};

void scripts::run(call& c, const task& what) {
    const engine_options& options = state_.options;
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
    task mine = what;
    if ((what.flags & script_flag::unsaid) == 0) {
        mine.read_only |= (what.flags & script_flag::no_writes) != 0;
    }
    const running_mark mark(*this, mine, c);
    has_written_ = false;
    killed_ = abandoned_;
    began_ns_ = clock_ns();
    // A transaction's slice goes on.
    if (slice_ends_ns_ == 0) begin_slice();
    session_.db = c.client.db;
    session_.protocol = 2;
    session_.user = c.client.user;
    session_.unlimited = c.client.unlimited;
    job todo{c, mine};
    lua_State* const in = what.in->state();
    if (lua_cpcall(in, run_protected, &todo) != 0) {
        c.reply.buffer().truncate(c.reply_begin);
        reply_with_error(c, in, mine);
        lua_pop(in, 1);
    }
    what.in->collect_if_full();
}

std::string_view scripts::execute(const std::string_view* args, std::size_t count,
                                  std::string_view& refusal) {
    const command_spec* const spec = find_named(state_.renamed.get(), fold_command_name(args[0]));
    const auto refuse = [&refusal](std::string_view why) {
        refusal = why;
        return std::string_view();
    };
    if (spec == nullptr) return refuse("Unknown Redis command called from script");
    if (!arity_fits(*spec, count)) {
        return refuse("Wrong number of args calling Redis command from script");
    }
    std::uint32_t flags = spec->flags;
    if ((flags & command_flag::has_forms) != 0 && count > 1) [[unlikely]] {
        const acl::command_form* const form = acl::find_form(spec->name, args[1]);
        if (form == nullptr) return refuse("Unknown Redis command called from script");
        if (!arity_fits(form->arity, count)) {
            return refuse("Wrong number of args calling Redis command from script");
        }
        flags = flags_of(*spec, args, count);
    }
    constexpr std::uint32_t special = command_flag::noscript | command_flag::dangerous;
    if ((flags & special) != 0) [[unlikely]] {
        return refuse("This Redis command is not allowed from script");
    }
    if (is_stale_ && (flags & command_flag::stale) == 0) [[unlikely]] {
        return refuse("Can not execute the command on a stale replica");
    }
    command_reply_.clear();
    resp::reply_writer reply(command_reply_, session_.protocol);
    call inner{state_, session_, reply, &state_.database(session_.db)};
    inner.spec = spec;
    inner.args = args;
    inner.count = count;
    inner.in_exec = true;
    inner.in_script = true;
    // The script counts it, which raises it.
    const auto reject = [&](std::string_view why) {
        state_.commands.failed(inner);
        state_.commands.rejected(inner);
        return refuse(why);
    };
    if (!session_.unlimited && !permits(inner)) [[unlikely]] {
        state_.commands.rejected(inner);
        constexpr std::string_view code = "-NOPERM ";
        const std::string why(command_reply_.text().substr(code.size()));
        command_reply_.clear();
        command_reply_.append("-NOPERM ACL failure in script: " + why);
        return command_reply_.text();
    }
    if ((flags & (command_flag::write | command_flag::may_replicate)) != 0) {
        if (running_->read_only) {
            return reject("Write commands are not allowed from read-only scripts.");
        }
        if ((flags & command_flag::write) != 0) {
            if (!refusal_by_mode(state_.options.mode, flags).empty() &&
                (running_call_->client.special & session::master) == 0) {
                return reject(readonly_mode_error);
            }
            if (is_read_only_replica(state_, running_call_->client)) {
                return reject("-READONLY You can't write against a read only replica.");
            }
            if (!has_written_ && lacks_replicas(state_)) {
                return reject("-NOREPLICAS Not enough good replicas to write.");
            }
            if (!has_written_ && (running_call_->client.special & session::master) == 0) {
                const std::string why = save_trouble_text(state_);
                if (!why.empty()) {
                    inner.error(why);
                    state_.commands.rejected(inner);
                    return command_reply_.text();
                }
            }
            if (memory_is_short_ && (flags & command_flag::denyoom) != 0 && !has_written_ &&
                (running_->flags & script_flag::allow_oom) == 0) {
                return reject("-OOM command not allowed when used memory > 'maxmemory'.");
            }
            has_written_ = true;
        }
    }
    if (spec->first_key == 1 && count > 1) inner.hash = state_.env.hash(args[1]);
    const std::uint8_t db = session_.db;
    constexpr auto seen = attention::propagates | attention::follower | attention::pause;
    if ((state_.attention & seen) == 0) {
        state_.slow.run_unless_skipped(inner);
    } else {
        const expiry_scope expiry(inner);
        recording record(state_, *spec);
        state_.slow.run_unless_skipped(inner);
        record.end({args, count}, db);
    }
    executed_steps_ = steps_of(flags, {args, count}, command_reply_.size());
    if ((running_call_->client.special & session::tracking) != 0) [[unlikely]]
        remember_reads(*running_call_, *spec, {args, count});
    ++state_.env.counters.commands;
    if ((state_.attention & attention::monitors) != 0) [[unlikely]]
        feed_monitors(inner);
    return command_reply_.text();
}

void scripts::count_executed(lua_State* in) {
    vm::of(in).count_steps(in, std::exchange(executed_steps_, 0));
}

const command_spec* scripts::find_named_command(std::string_view name) const noexcept {
    return find_named(state_.renamed.get(), fold_command_name(name));
}

bool scripts::may_run(const command_spec& what, std::span<const std::string_view> args) const {
    return session_.unlimited || session_.user->check(what, args).why == acl::refusal::none;
}

void scripts::on_fiber(call& c, void (*what)(call&)) {
    if (fiber_.is_inside()) return what(c);
    EDDY_ASSERT(!is_late());
    // Where it waits if it is late: there must be room for it then.
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
    slice_ends_ns_ = 0;
    now_us_ = state_.env.now_us;
    const bool done = fiber_.start(
        [](void* self) {
            scripts& me = *static_cast<scripts*>(self);
            // Nothing catches below it: the stack is the fiber's own.
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
    // The command's own arguments end with it, but a script has copied what it needs of them, and a
    // transaction's commands are the fiber's.
    late_session_ = &c.client;
    state_.attention |= attention::script;
    session_extras& extras = extras_of(c.client);
    extras.waits_for = wait_kind::script;
    extras.deadline_us = session::no_deadline;
    c.client.blocked = true;
    note_busy();
}

void scripts::begin_slice() noexcept {
    const std::int64_t limit_ms = state_.options.busy_reply_ms;
    const bool is_shorter = limit_ms != 0 && limit_ms < slice_ms;
    slice_ends_ns_ = began_ns_ + (is_shorter ? limit_ms : slice_ms) * ms_ns;
}

// After a slice. What is compared are milliseconds: the limit may be any number of them.
void scripts::note_busy() {
    const std::int64_t limit_ms = state_.options.busy_reply_ms;
    if (is_busy_ || limit_ms == 0 || running_ms() < limit_ms) return;
    is_busy_ = true;
    end_script_waits(state_, state_.script_waits.size());
}

void scripts::limit_load(bool on) noexcept {
    load_is_over_ = false;
    load_ends_ns_ = on ? clock_ns() + libraries::max_load_ms * ms_ns : 0;
    functions().machine().look_always(false);
}

void scripts::look_at_clock(lua_State* in) {
    if (load_ends_ns_ != 0) {
        if (look_ns() < load_ends_ns_) return;
        load_is_over_ = true;
        vm::of(in).look_always(true);
        raise(in, "FUNCTION LOAD timeout");
    }
    if (!killed_) pause_if_due();
    if (!killed_) return;
    // From now on at every instruction: no pcall() of the script's keeps it alive.
    vm::of(in).look_always(true);
    raise(in, running_->is_function ? "Script killed by user with FUNCTION KILL."
                                    : "Script killed by user with SCRIPT KILL.");
}

void scripts::pause_if_due() {
    if (running_ == nullptr || !fiber_.is_inside()) return;
    if (look_ns() < slice_ends_ns_) return;
    if (running_command_.empty()) {
        const call& c = *running_call_;
        for (std::size_t i = 0; i < c.count; ++i) running_command_.emplace_back(c.arg(i));
    }
    fiber_.suspend();
}

void scripts::go_on() {
    if (!is_late()) return;
    // Within a script time stands still, and what it causes for its session is that session's.
    const std::int64_t now_us = std::exchange(state_.env.now_us, now_us_);
    const std::int64_t now_ms = std::exchange(state_.env.now_ms, now_us_ / 1000);
    session* const outer = std::exchange(state_.executing, late_session_);
    byte_buffer outer_pushes = std::exchange(state_.own_pushes, std::move(late_pushes_));
    slice_ends_ns_ = clock_ns() + slice_ms * ms_ns;
    const bool done = fiber_.resume();
    late_pushes_ = std::exchange(state_.own_pushes, std::move(outer_pushes));
    state_.executing = outer;
    state_.env.now_us = now_us;
    state_.env.now_ms = now_ms;
    if (!done) return note_busy();
    if (std::exchange(lacked_memory_, false)) {
        clear(reply_);
        late_session_->closing = true;
    }
    finish_late();
}

void scripts::finish_late() {
    session& who = *std::exchange(late_session_, nullptr);
    end_attention();
    session_extras& extras = *who.extras;
    try {
        if ((who.special & (session::reply_off | session::reply_skip)) == 0) {
            extras.outbox.append(reply_.text());
        }
        extras.outbox.append(late_pushes_.text());
    } catch (const std::bad_alloc&) {
        who.closing = true;
    }
    who.special &= static_cast<std::uint16_t>(~session::reply_skip);
    clear(late_pushes_);
    clear(reply_);
    state_.slow.end_late(*call_);
    call_.reset();
    {
        // WAIT asks for what this session wrote.
        session* const outer = std::exchange(state_.executing, &who);
        finish_unit(state_);
        state_.executing = outer;
    }
    forget_wait(state_, who);
    who.wake();
    // Before this client's next command comes.
    state_.script_waits_ended_at_once = 1;
    if (holds_ == 0) end_script_waits_in_turn(state_);
    check_output(state_, who);
    try {
        serve_waiting(state_);
        state_.unsettled = false;
    } catch (const std::bad_alloc&) {
        // The next command does it.
        state_.unsettled = true;
    }
}

void scripts::end_attention() noexcept {
    if (holds_ == 0 && late_session_ == nullptr)
        state_.attention &= static_cast<std::uint16_t>(~attention::script);
}

void scripts::let_begin() noexcept {
    if (--holds_ > 0) return;
    end_attention();
    if (!is_late()) end_script_waits(state_, state_.script_waits.size());
}

void scripts::forget(session& who) {
    if (late_session_ != &who) return;
    abandoned_ = true;
    killed_ = true;
    while (is_late()) go_on();
    abandoned_ = false;
}

std::int64_t scripts::clock_ns() const noexcept {
    const slice_clock by = state_.env.slice_time;
    return by != nullptr ? by() : looked_ns_;
}

std::int64_t scripts::look_ns() noexcept {
    looked_ns_ += look_takes_ns;
    return clock_ns();
}

std::int64_t scripts::running_ms() const noexcept { return (clock_ns() - began_ns_) / ms_ns; }

// --- scripting.hpp -----------------------------------------------------------------------------

void scripts_deleter::operator()(scripts* gone) const noexcept { delete gone; }

scripts& scripts_of(call& c) {
    if (c.state.scripting == nullptr) c.state.scripting.reset(new scripts(c.client.home));
    return *c.state.scripting;
}

namespace scripting {
namespace {

// What the script that is called says of itself.
std::uint32_t said_by(const call& c) {
    const auto what = c.spec->run;
    if (what == commands::eval || what == commands::eval_ro) {
        const script_head head = take_script_head(c.arg(1), false);
        return head.refusal.empty() ? head.flags : script_flag::unsaid;
    }
    if (c.state.scripting == nullptr) return script_flag::unsaid;
    if (what == commands::fcall || what == commands::fcall_ro) {
        const libraries* const all = c.state.scripting->functions_if_any();
        const libraries::function* const its = all == nullptr ? nullptr : all->find(c.arg(1));
        return its == nullptr ? script_flag::unsaid : its->flags;
    }
    const scripts::cached* const its = c.state.scripting->find(lower(c.arg(1)));
    return its == nullptr ? script_flag::unsaid : its->flags;
}

}  // namespace

std::uint32_t flags_of(const call& c, std::uint32_t flags) {
    if (c.count < 2) return flags;
    const std::uint32_t said = said_by(c);
    if ((said & script_flag::unsaid) != 0) return flags;
    flags &= ~(command_flag::stale | command_flag::may_replicate);
    if ((said & script_flag::no_writes) == 0) flags |= command_flag::write;
    if ((said & script_flag::allow_stale) != 0) flags |= command_flag::stale;
    return flags;
}

void run_with_scripts(call& c, void (*what)(call&)) { scripts_of(c).on_fiber(c, what); }

bool is_late(const engine::state& s) noexcept {
    return s.scripting != nullptr && s.scripting->is_late();
}

bool is_busy(const engine::state& s) noexcept {
    return s.scripting != nullptr && s.scripting->is_busy();
}

void go_on(engine::state& s) { s.scripting->go_on(); }

void hold_back(engine::state& s) noexcept { s.scripting->hold_back(); }

void let_begin(engine::state& s) noexcept { s.scripting->let_begin(); }

void forget(engine::state& s, session& who) {
    if (s.scripting != nullptr) s.scripting->forget(who);
}

std::string_view busy_text(const engine::state& s) noexcept {
    const scripts::task* const running = s.scripting->running();
    return running != nullptr && running->is_function ? busy_function_text : busy_script_text;
}

std::vector<std::string> library_codes(const engine::state& s) {
    std::vector<std::string> codes;
    if (s.scripting == nullptr) return codes;
    if (const libraries* const known = s.scripting->functions_if_any()) {
        for (const auto& each : known->all()) codes.push_back(each->code);
    }
    return codes;
}

std::string load_library(engine::state& s, std::string_view code) {
    if (s.scripting == nullptr) s.scripting.reset(new scripts(*s.home));
    std::string why;
    s.scripting->functions().load(code, true, why);
    return why;
}

void drop_libraries(engine::state& s) noexcept {
    if (s.scripting != nullptr && s.scripting->functions_if_any() != nullptr) {
        s.scripting->functions().flush();
    }
}

usage use(const engine::state& s) noexcept {
    if (s.scripting == nullptr) return {};
    scripts& of = *s.scripting;
    usage now;
    now.vm_bytes = of.eval_vm().used_bytes();
    now.scripts = of.count();
    now.script_bytes = of.cached_bytes();
    if (const libraries* const known = of.functions_if_any()) {
        now.function_vm_bytes = known->vm_bytes();
        now.functions = known->function_count();
        now.libraries = known->size();
        now.library_bytes = known->text_bytes();
    }
    return now;
}

}  // namespace scripting
}  // namespace eddy::cache
