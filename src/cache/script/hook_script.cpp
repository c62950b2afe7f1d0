// Arguments and results of the hooks.
#include "cache/script/hook_script.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <utility>

namespace eddy::cache {
namespace {

enum { miss, write, erase, expire, start, tick, stop };

std::size_t index_of(hook_job::kind what) noexcept {
    switch (what) {
        case hook_job::kind::miss: return miss;
        case hook_job::kind::write: return write;
        case hook_job::kind::erase: return erase;
        default: return expire;
    }
}

bool is_false(lua::stack in) noexcept {
    return in.type(1) == lua::value_type::boolean && !in.toboolean(1);
}

// Two results: a value and its time, or nothing (false) and why.
void read(lua::stack in, hook_job::kind what, hook_answer& into) {
    const auto fail = [&](std::string_view why) {
        into.result.failed = true;
        into.error = why.substr(0, lua::blocking_state::max_error);
    };
    const bool is_nothing = in.isnil(1) || is_false(in);
    if (is_nothing && in.type(2) == lua::value_type::string) return fail(in.tostring(2));
    if (what != hook_job::kind::miss) {
        if (is_false(in)) fail("it returned false");
        return;
    }
    if (is_nothing && !in.isnil(1)) return fail("it returned false");
    if (!is_nothing) {
        const lua::value_type type = in.type(1);
        if (type != lua::value_type::string && type != lua::value_type::number) {
            fail("it returned a value of type ");
            into.error += in.type_name(1);
            into.error += ", not a string";
            return;
        }
        into.result.value = in.tostring(1);
    }
    if (in.isnil(2)) return;
    const double seconds = in.type(2) == lua::value_type::number ? in.tonumber(2) : -1;
    if (!(seconds >= 0) || std::isinf(seconds))
        return fail("its second result, seconds to live, is no number from 0 on");
    constexpr double longest_s = 1e11;
    // Zero is no time to live; next to nothing is one.
    const double ms = std::min(seconds, longest_s) * 1000;
    into.result.ttl_ms = ms > 0 && ms < 1 ? 1 : static_cast<std::int64_t>(ms);
}

/// Calls a function of a thread's own. Why it has failed, or empty.
template <class Push>
std::string call_own(lua::blocking_state& in, std::size_t which, std::chrono::nanoseconds limit,
                     Push push) {
    if (!in.defined()[which]) return {};
    std::string why;
    const auto called = in.call(which, limit, push, 2, [&](lua::stack of) {
        if (is_false(of) || (of.isnil(1) && of.type(2) == lua::value_type::string))
            why = of.type(2) == lua::value_type::string
                      ? of.tostring(2).substr(0, lua::blocking_state::max_error)
                      : std::string_view("it returned false");
    });
    if (!called) why = called.error();
    return why.empty() ? why : std::string(hook_names[which]) + " failed: " + why;
}

int push_nothing(lua::stack) { return 0; }

int push_arguments(lua::stack in, const hook_job& job) {
    in.pushstring(job.key);
    int arguments = 1;
    if (job.what == hook_job::kind::write) {
        in.pushstring(*job.value);
        if (job.ttl_ms != 0)
            in.pushnumber(static_cast<double>(job.ttl_ms) / 1000);
        else
            in.pushnil();
        arguments += 2;
    }
    in.pushinteger(job.database);
    return arguments + 1;
}

}  // namespace

hook_functions hooks_of(const std::vector<bool>& defined) noexcept {
    hook_functions found;
    if (defined.size() != hook_names.size()) return found;
    found.miss = defined[miss];
    found.write = defined[write];
    found.erase = defined[erase];
    found.expire = defined[expire];
    found.start = defined[start];
    found.tick = defined[tick];
    found.stop = defined[stop];
    return found;
}

std::expected<std::chrono::nanoseconds, std::string> run_start(lua::blocking_state& in,
                                                               std::chrono::nanoseconds limit) {
    std::string why = call_own(in, start, limit, push_nothing);
    if (!why.empty()) return std::unexpected(std::move(why));
    if (!in.defined()[tick]) return std::chrono::nanoseconds{};
    // on_start() may have set it.
    const auto ms = in.global_number("tick_ms", static_cast<double>(usual_tick.count()));
    if (!ms) return std::unexpected(ms.error());
    constexpr auto least = static_cast<double>(shortest_tick.count());
    constexpr auto most = static_cast<double>(std::chrono::milliseconds(longest_tick).count());
    if (!(*ms >= least && *ms <= most))
        return std::unexpected(
            "tick_ms must be a number of milliseconds from 10 on, at most those "
            "of a day");
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::duration<double, std::milli>(*ms));
}

std::string run_tick(lua::blocking_state& in, std::chrono::nanoseconds since_last,
                     std::chrono::nanoseconds limit) {
    return call_own(in, tick, limit, [&](lua::stack of) {
        of.pushnumber(std::chrono::duration<double, std::milli>(since_last).count());
        return 1;
    });
}

std::string run_stop(lua::blocking_state& in, std::chrono::nanoseconds limit) {
    return call_own(in, stop, limit, push_nothing);
}

hook_answer run_hook(lua::blocking_state& in, const hook_job& job, std::chrono::nanoseconds limit) {
    hook_answer answer;
    answer.result.id = job.id;
    auto called = in.call(
        index_of(job.what), limit, [&](lua::stack of) { return push_arguments(of, job); }, 2,
        [&](lua::stack of) { read(of, job.what, answer); });
    if (!called) {
        answer.result.failed = true;
        answer.result.value.reset();
        answer.error = std::move(called.error());
    }
    return answer;
}

}  // namespace eddy::cache
