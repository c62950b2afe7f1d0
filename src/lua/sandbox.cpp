// Steps, the collector and the compiler of a sandbox.
#include "lua/sandbox.hpp"

#include <eddy/base/assert.hpp>

#include "lua/libraries.hpp"
#include "lua/tail_calls.hpp"

#include <lua.hpp>

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

namespace eddy::lua {
namespace {

constexpr std::size_t max_kept_scratch = 256 * 1024;

// In protected mode, with a metatable on top: gives it to a userdata, which is then dropped.
void leave_behind(lua_State* in) {
    lua_newuserdata(in, 1);
    lua_insert(in, -2);
    lua_setmetatable(in, -2);
    lua_pop(in, 1);
}

int keep_function(lua_State* in) {
    lua_pushinteger(in, luaL_ref(in, LUA_REGISTRYINDEX));
    return 1;
}

}  // namespace

sandbox::sandbox(supervisor& by, std::size_t max_bytes, furnisher furnish)
    : state(max_bytes), by_(by), furnish_(std::move(furnish)) {
    open(&sandbox::allocate);
    furnish_and_limit();
}

sandbox::~sandbox() { shut(); }

void sandbox::furnish_and_limit() {
    // No limit of memory or time holds yet.
    const int status = lua_cpcall(
        raw(),
        [](lua_State* in) -> int {
            sandbox& me = *static_cast<sandbox*>(lua_touserdata(in, 1));
            furnish(in, me.furnish_);
            me.watch_cycles(in);
            return 0;
        },
        this);
    EDDY_ASSERT(status == 0);
    checks_always_ = false;
    set_interrupt(instructions_wanted());
    limit_memory(true);
    is_open_ = true;
}

void sandbox::shut() noexcept {
    is_open_ = false;
    close();
    largest_bytes_ = 0;
    large_blocks_ = {};
}

void sandbox::reset() {
    shut();
    open(&sandbox::allocate);
    furnish_and_limit();
}

void sandbox::check(stack in) {
    steps_ = 0;
    may_raise_ ? by_.check(in) : by_.check_quietly();
}

void sandbox::interrupt(lua_State* in) {
    // Only here it gets longer: what comes and goes all the time would put it off for ever.
    const int wanted = instructions_wanted();
    if (wanted != instructions_) set_interrupt(wanted);
    check(in);
}

void sandbox::check_always(bool on) noexcept {
    checks_always_ = on;
    set_interrupt(instructions_wanted());
}

int sandbox::instructions_wanted() const noexcept {
    if (checks_always_) return 1;
    if (largest_bytes_ == 0) return instructions_a_look;
    const std::size_t times = largest_bytes_ / large_block_part;
    return std::max(1, instructions_a_look /
                           static_cast<int>(std::min<std::size_t>(times, instructions_a_look)));
}

void sandbox::set_interrupt(int instructions) noexcept {
    instructions_ = instructions;
    interrupt_each(instructions);
}

void sandbox::note_blocks(std::size_t gone, std::size_t made) noexcept {
    const auto counter = [this](std::size_t bytes) -> std::uint32_t& {
        return large_blocks_[static_cast<std::size_t>(std::bit_width(bytes)) - 1 -
                             large_block_bits];
    };
    // One may be older than the counters.
    if (gone >= large_block && counter(gone) != 0) --counter(gone);
    if (made >= large_block) ++counter(made);
    std::size_t kinds = large_blocks_.size();
    while (kinds != 0 && large_blocks_[kinds - 1] == 0) --kinds;
    largest_bytes_ = kinds == 0 ? 0 : large_block << kinds;
    // Also in the middle of an instruction: the hook may be set at any time.
    if (is_open_ && instructions_wanted() < instructions_) set_interrupt(instructions_wanted());
}

void sandbox::check_scratch(stack in) const {
    if (scratch_.size() > max_bytes()) luaL_error(in.raw(), "not enough memory");
}

std::uint32_t sandbox::random() noexcept {
    // The generator of drand48().
    random_ = (random_ * 0x5'deec'e66dULL + 0xb) & ((std::uint64_t{1} << 48) - 1);
    return static_cast<std::uint32_t>(random_ >> 17);
}

void sandbox::seed_random(std::uint32_t seed) noexcept {
    random_ = std::uint64_t{seed} << 16 | 0x330e;
}

void* sandbox::allocate(void* self, void* block, std::size_t old_bytes, std::size_t bytes) {
    void* const made = resize(self, block, old_bytes, bytes);
    if (bytes >= large_block || old_bytes >= large_block) [[unlikely]] {
        if (made != nullptr || bytes == 0)
            static_cast<sandbox*>(static_cast<state*>(self))->note_blocks(old_bytes, bytes);
    }
    return made;
}

bool sandbox::call_protected(function run, void* of) { return lua_cpcall(raw(), run, of) == 0; }

int sandbox::compile(std::string_view text, const char* name, std::string& why) {
    collect_if_full();
    const std::string changed = without_tail_calls(text, [this] { let_others_run(); });
    int status = load_within(raw(), changed, name, max_compile_time);
    if (status == LUA_ERRSYNTAX && changed != text) {
        // Its error shall speak of the text as it was written.
        lua_pop(raw(), 1);
        status = load_within(raw(), text, name, max_compile_time);
    }
    if (status == 0) {
        lua_pushcfunction(raw(), keep_function);
        lua_insert(raw(), -2);
        status = lua_pcall(raw(), 1, 1, 0);
    }
    if (status != 0) {
        std::size_t size = 0;
        const char* const reason = lua_tolstring(raw(), -1, &size);
        why = reason != nullptr ? std::string(reason, size) : "not enough memory";
        lua_pop(raw(), 1);
        return 0;
    }
    const auto function = static_cast<int>(lua_tointeger(raw(), -1));
    lua_pop(raw(), 1);
    return function;
}

// --- The collector -------------------------------------------------------------------------------
// lua_gc() may do any amount of work at once. Here one call does a single step of it, like an
// allocation beyond the collector's threshold. The end of a cycle shows by a garbage userdata: its
// finalizer is the last call of a cycle.

int sandbox::note_cycle(lua_State* in) {
    sandbox& me = *static_cast<sandbox*>(lua_touserdata(in, lua_upvalueindex(1)));
    ++me.cycles_;
    if (!me.is_open_) return 0;
    const bool was_limited = me.has_memory_limit();
    me.limit_memory(false);
    lua_getmetatable(in, 1);
    leave_behind(in);
    me.limit_memory(was_limited);
    return 0;
}

void sandbox::watch_cycles(lua_State* in) {
    lua_createtable(in, 0, 1);
    lua_pushlightuserdata(in, this);
    lua_pushcclosure(in, note_cycle, 1);
    lua_setfield(in, -2, "__gc");
    leave_behind(in);
}

bool sandbox::collect_some(stack from) {
    lua_State* const in = from.raw();
    // It goes through some thousand bytes, or one table.
    constexpr std::size_t steps = 400;
    const unsigned before = cycles_;
    lua_gc(in, LUA_GCRESTART, 0);
    lua_pushliteral(in, "");
    lua_pop(in, 1);
    count_steps(in, steps);
    count_largest(in);
    return cycles_ != before;
}

void sandbox::collect_all(stack in) {
    // Values that became garbage during the present cycle are found by the next one.
    for (int cycle = 0; cycle < 2; ++cycle) {
        while (!collect_some(in)) {
        }
    }
}

void sandbox::collect_if_full() noexcept {
    // Without memory it has to work, too.
    may_raise_ = false;
    limit_memory(false);
    for (int cycle = 0; cycle < 2 && used_bytes() > max_bytes() / 2; ++cycle) {
        const int status = lua_cpcall(
            raw(),
            [](lua_State* in) -> int {
                while (!of(in).collect_some(in)) {
                }
                return 0;
            },
            nullptr);
        if (status != 0) lua_pop(raw(), 1);
    }
    may_raise_ = true;
    limit_memory(true);
    if (scratch_.capacity() > max_kept_scratch) scratch_ = byte_buffer();
}

void sandbox::forget(int function) noexcept { luaL_unref(raw(), LUA_REGISTRYINDEX, function); }

}  // namespace eddy::lua
