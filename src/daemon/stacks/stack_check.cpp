// Check of a stack without a daemon: the planner over an empty registry.
#include "daemon/stacks/stack_check.hpp"

#include <eddy/io/loop.hpp>

#include "daemon/control/json.hpp"
#include "daemon/runtimes/runtime_parts.hpp"
#include "daemon/runtimes/runtime_registry.hpp"
#include "daemon/stacks/stack_planner.hpp"
#include "daemon/stacks/stack_view.hpp"

#include <fmt/format.h>

namespace eddy::daemon {
namespace {

std::pair<int, std::string> answer(stack_refusal refusal) {
    return {refusal.why.status, dump_json(show_refusal(refusal))};
}

task<std::pair<int, std::string>> plan(const runtime_registry& registry, stack_request wanted) {
    stack_planner planner(registry, nullptr);
    auto found = co_await planner.plan(wanted);
    if (!found) co_return answer(std::move(found.error()));
    stack_plan shown;
    for (const planned_change& each : found->changes) shown.changes.push_back(each.shown);
    co_return std::pair(200, dump_json(show_plan(shown)));
}

}  // namespace

std::pair<int, std::string> check_stack(std::span<const runtime::type> types, std::string name,
                                        std::string_view body) {
    const auto value = parse_json(body, "the request's body");
    if (!value) return answer({value.error()});
    auto wanted = stack_from_json(std::move(name), *value);
    if (!wanted) return answer({std::move(wanted.error())});
    auto made = loop::create({});
    if (!made)
        return answer({{500, fmt::format("could not make a loop: {}", made.error().message())}});
    const runtime_registry registry(types, runtime_limit);
    return (*made)->run(plan(registry, std::move(*wanted)));
}

}  // namespace eddy::daemon
