// Results of on_send.
#include "runtime/scripting/send_callback.hpp"

#include "runtime/scripting/awaited_call.hpp"

#include <fmt/format.h>

#include <span>
#include <utility>

namespace eddy::runtime {
namespace {

outcome<std::optional<std::string>> fate_of(std::string text, const script::call_end& end,
                                            const std::string& what) {
    using kind = script::call_end::kind;
    if (end.what == kind::gone)
        return refuse(503, fmt::format("{} has stopped during on_send", what));
    if (end.what == kind::failed)
        return refuse(500, fmt::format("on_send has failed: {}",
                                       end.text.empty() ? std::string(end.reason) : end.text));
    if (end.results.empty()) return text;
    const bool* const truth = end.results[0].truth();
    if (truth != nullptr && !*truth) return std::nullopt;
    if (const std::string* const other = end.results[0].text()) return *other;
    return text;
}

}  // namespace

task<outcome<std::optional<std::string>>> ask_on_send(loop_script& by, std::size_t callback,
                                                      std::string text,
                                                      std::shared_ptr<std::size_t> waiting,
                                                      std::string what) {
    if (*waiting >= max_waiting_sends)
        co_return refuse(503, fmt::format("{} messages wait for on_send, which is the limit",
                                          max_waiting_sends));
    const script_argument passed = std::string_view(text);
    const script::call_end* ended = nullptr;
    auto call = by.begin(callback, std::span(&passed, 1), ended);
    if (!call) co_return fate_of(std::move(text), *ended, what);
    struct counting {
        std::size_t& of;
        explicit counting(std::size_t& its) noexcept : of(its) { ++of; }
        ~counting() { --of; }
    } const counted(*waiting);
    const auto end = co_await await_call(std::move(call));
    if (!end) co_return fate_of(std::move(text), script::call_end(), what);
    co_return fate_of(std::move(text), *end, what);
}

}  // namespace eddy::runtime
