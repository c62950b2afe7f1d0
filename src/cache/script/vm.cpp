// Memory, the hook and the compiler of one Lua state.
#include "cache/script/vm.hpp"

#include <eddy/base/assert.hpp>

#include "cache/script/script_text.hpp"
#include "cache/script/scripts.hpp"

#include <lua.hpp>

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

namespace eddy::cache {
namespace {

constexpr std::size_t max_kept_scratch = 256 * 1024;

// Called protected, with the vm's metatable of a userdata on top: of one that nobody has.
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

vm::vm(scripts& of, purpose what, std::size_t max_bytes)
    : owner_(of), purpose_(what), max_bytes_(max_bytes) {
    open();
}

vm::~vm() { close(); }

void vm::open() {
    limited_ = false;
    used_ = 0;
    largest_bytes_ = 0;
    large_blocks_ = {};
    state_ = luaL_newstate();
    if (state_ == nullptr) throw std::bad_alloc();
    // LuaJIT's own allocator below ours: it is fast, and closing the state gives all back at once.
    used_ = static_cast<std::size_t>(lua_gc(state_, LUA_GCCOUNT, 0)) * 1024 +
            static_cast<std::size_t>(lua_gc(state_, LUA_GCCOUNTB, 0));
    allocate_ = lua_getallocf(state_, &allocator_);
    lua_setallocf(state_, &vm::allocate, this);
    luaJIT_setmode(state_, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF);
    const int status = lua_cpcall(
        state_,
        [](lua_State* in) -> int {
            vm& me = *static_cast<vm*>(lua_touserdata(in, 1));
            furnish(in, me);
            me.watch_cycles(in);
            return 0;
        },
        this);
    EDDY_ASSERT(status == 0);
    looks_always_ = false;
    set_hook(instructions_wanted());
    limited_ = is_open_ = true;
}

void vm::close() noexcept {
    limited_ = is_open_ = false;
    lua_sethook(state_, nullptr, 0, 0);
    lua_setallocf(state_, allocate_, allocator_);
    lua_close(state_);
    state_ = nullptr;
}

void vm::reset() {
    close();
    open();
}

void vm::look_at_clock(lua_State* in) {
    steps_ = 0;
    may_raise_ ? owner_.look_at_clock(in) : owner_.pause_if_due();
}

void vm::hook(lua_State* in, lua_Debug*) {
    vm& me = of(in);
    // Only here it gets longer: what comes and goes all the time would put the look off for ever.
    const int wanted = me.instructions_wanted();
    if (wanted != me.instructions_) me.set_hook(wanted);
    me.look_at_clock(in);
}

void vm::look_always(bool on) noexcept {
    looks_always_ = on;
    set_hook(instructions_wanted());
}

int vm::instructions_wanted() const noexcept {
    if (looks_always_) return 1;
    if (largest_bytes_ == 0) return instructions_a_look;
    const std::size_t times = largest_bytes_ / large_block_part;
    return std::max(1, instructions_a_look /
                           static_cast<int>(std::min<std::size_t>(times, instructions_a_look)));
}

void vm::set_hook(int instructions) noexcept {
    instructions_ = instructions;
    lua_sethook(state_, &vm::hook, LUA_MASKCOUNT, instructions);
}

void vm::note_blocks(std::size_t gone, std::size_t made) noexcept {
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
    if (is_open_ && instructions_wanted() < instructions_) set_hook(instructions_wanted());
}

void vm::check_scratch(lua_State* in) const {
    if (scratch_.size() > max_bytes_) luaL_error(in, "not enough memory");
}

std::uint32_t vm::random() noexcept {
    // The generator of drand48().
    random_ = (random_ * 0x5'deec'e66dULL + 0xb) & ((std::uint64_t{1} << 48) - 1);
    return static_cast<std::uint32_t>(random_ >> 17);
}

void vm::seed_random(std::uint32_t seed) noexcept { random_ = std::uint64_t{seed} << 16 | 0x330e; }

vm& vm::of(lua_State* in) noexcept {
    void* self = nullptr;
    static_cast<void>(lua_getallocf(in, &self));
    return *static_cast<vm*>(self);
}

void* vm::allocate(void* self, void* block, std::size_t old_bytes, std::size_t bytes) {
    vm& me = *static_cast<vm*>(self);
    if (bytes > old_bytes && me.limited_ && me.used_ - old_bytes + bytes > me.max_bytes_) {
        return nullptr;
    }
    void* const made = me.allocate_(me.allocator_, block, old_bytes, bytes);
    if (made == nullptr && bytes != 0) return nullptr;
    me.used_ += bytes - old_bytes;
    if (bytes >= large_block || old_bytes >= large_block) [[unlikely]]
        me.note_blocks(old_bytes, bytes);
    return made;
}

int vm::compile(std::string_view text, const char* name, std::string& why) {
    collect_if_full();
    const std::string changed = without_tail_calls(text);
    const auto ends = std::chrono::steady_clock::now() + max_compile_time;
    int status = load_within(state_, changed, name, ends);
    if (status == LUA_ERRSYNTAX && changed != text) {
        // Its error shall speak of the text as it was written.
        lua_pop(state_, 1);
        status = load_within(state_, text, name, ends);
    }
    if (status == 0) {
        lua_pushcfunction(state_, keep_function);
        lua_insert(state_, -2);
        status = lua_pcall(state_, 1, 1, 0);
    }
    if (status != 0) {
        std::size_t size = 0;
        const char* const reason = lua_tolstring(state_, -1, &size);
        why = reason != nullptr ? std::string(reason, size) : "not enough memory";
        lua_pop(state_, 1);
        return 0;
    }
    const auto function = static_cast<int>(lua_tointeger(state_, -1));
    lua_pop(state_, 1);
    return function;
}

// --- The collector -------------------------------------------------------------------------------
// lua_gc() may do any amount of work at once. What is called here, as by any allocation that has
// passed the collector's threshold, is a single step of it. What tells that a cycle has ended is a
// userdata that is garbage: the last thing in a cycle is to call its finalizer.

int vm::note_cycle(lua_State* in) {
    vm& me = *static_cast<vm*>(lua_touserdata(in, lua_upvalueindex(1)));
    ++me.cycles_;
    if (!me.is_open_) return 0;
    const bool was_limited = std::exchange(me.limited_, false);
    lua_getmetatable(in, 1);
    leave_behind(in);
    me.limited_ = was_limited;
    return 0;
}

void vm::watch_cycles(lua_State* in) {
    lua_createtable(in, 0, 1);
    lua_pushlightuserdata(in, this);
    lua_pushcclosure(in, note_cycle, 1);
    lua_setfield(in, -2, "__gc");
    leave_behind(in);
}

bool vm::collect_some(lua_State* in) {
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

void vm::collect_all(lua_State* in) {
    // What has become garbage since the present cycle began is found by the next one.
    for (int cycle = 0; cycle < 2; ++cycle) {
        while (!collect_some(in)) {
        }
    }
}

void vm::collect_if_full() noexcept {
    // Without memory it has to work, too.
    may_raise_ = limited_ = false;
    for (int cycle = 0; cycle < 2 && used_ > max_bytes_ / 2; ++cycle) {
        const int status = lua_cpcall(
            state_,
            [](lua_State* in) -> int {
                while (!of(in).collect_some(in)) {
                }
                return 0;
            },
            nullptr);
        if (status != 0) lua_pop(state_, 1);
    }
    may_raise_ = limited_ = true;
    if (scratch_.capacity() > max_kept_scratch) scratch_ = byte_buffer();
}

void vm::forget(int function) noexcept { luaL_unref(state_, LUA_REGISTRYINDEX, function); }

}  // namespace eddy::cache
