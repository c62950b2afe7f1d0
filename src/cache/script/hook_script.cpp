// Arguments and results of the hooks.
#include "cache/script/hook_script.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <utility>

namespace eddy::cache {
namespace {

enum { miss, write, erase, expire };

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
    return found;
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
