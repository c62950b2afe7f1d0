// Log of failures.
#include "runtime/logs/failure_log.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>

#include <fmt/format.h>

#include <new>
#include <utility>

namespace eddy::runtime {
namespace {

constexpr std::string_view other_kinds = "other";

}  // namespace

failure_log::~failure_log() {
    for (const auto& [kind, its] : kinds_) {
        if (its.left_out == 0) continue;
        try {
            to_.write(fmt::format("{} more {} {} since the last report", its.left_out, words_.many,
                                  kind));
        } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): metrics have them
        }
    }
}

bool failure_log::is_due(std::string_view kind) const noexcept {
    auto found = kinds_.find(kind);
    if (found == kinds_.end() && kinds_.size() >= max_kinds) found = kinds_.find(other_kinds);
    return found == kinds_.end() || loop::current().now() >= found->second.next;
}

void failure_log::write(std::string_view kind, std::string_view line) {
    EDDY_ASSERT(!kind.empty() && kinds_.size() <= max_kinds + 1);
    auto found = kinds_.find(kind);
    if (found == kinds_.end())
        found =
            kinds_.try_emplace(std::string(kinds_.size() < max_kinds ? kind : other_kinds)).first;
    report& its = found->second;
    const time_point now = loop::current().now();
    if (now < its.next) {
        ++its.left_out;
        return;
    }
    std::string text = fmt::format("{}: {}", words_.one, line);
    if (its.left_out > 0) text += fmt::format("; so did {} before", std::exchange(its.left_out, 0));
    to_.write(text);
    its.next = now + interval_;
}

}  // namespace eddy::runtime
