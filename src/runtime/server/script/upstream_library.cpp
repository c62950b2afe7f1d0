// Rows of the functions for upstreams.
#include "runtime/server/script/upstream_library.hpp"

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

namespace eddy::runtime::server {
namespace {

using script::answer;
using script::argument;
using script::argument_kind;
using script::invocation;
using script::library_function;

constexpr std::size_t bytes_a_step = 64;

/// Null without --upstream.
upstreams* links_of(const invocation& of) noexcept { return of.context_if<upstreams>(); }

answer upstream_send(invocation& of) {
    upstreams* const all = links_of(of);
    const double number = of.number(1);
    const std::string_view text = of.text(2);
    if (all == nullptr || !(number >= 1) || number > static_cast<double>(all->count()))
        return answer::failed("there is no such server: they are numbered as --upstream has them");
    of.count(text.size() / bytes_a_step);
    return all->send(static_cast<std::size_t>(number), text);
}

answer upstream_broadcast(invocation& of) {
    upstreams* const all = links_of(of);
    const std::string_view text = of.text(1);
    std::size_t took = 0;
    const std::size_t count = all == nullptr ? 0 : all->count();
    of.count(count * (text.size() / bytes_a_step + 1));
    for (std::size_t number = 1; number <= count; ++number) took += all->send(number, text) ? 1 : 0;
    return script::values_of(took);
}

answer upstream_numbers(invocation& of) {
    const upstreams* const all = links_of(of);
    script::table made;
    const std::size_t count = all == nullptr ? 0 : all->count();
    for (std::size_t number = 1; number <= count; ++number)
        if (all->is_connected(number)) made.elements.emplace_back(static_cast<double>(number));
    return script::values_of(std::move(made));
}

constexpr argument text_argument{.name = "text", .kind = argument_kind::text};

constexpr std::array<library_function, 3> rows = {{
    {.name = "upstream_send",
     .arguments = {{{.name = "upstream", .kind = argument_kind::number}, text_argument}},
     .takes = "the number of a server and a text",
     .help = "Queues a message for a server of --upstream, 1 for the first one; it waits while "
             "there is no connection. False when the queue is full.",
     .run = upstream_send},
    {.name = "upstream_broadcast",
     .arguments = {{text_argument}},
     .takes = "a text",
     .help = "Queues a message for all servers of --upstream. Returns how many took it.",
     .run = upstream_broadcast},
    {.name = "upstreams",
     .help = "List of the servers of --upstream that are connected, by number.",
     .run = upstream_numbers},
}};

}  // namespace

script::library upstream_library(upstreams* of) {
    return {.name = "self", .functions = rows, .context = of};
}

}  // namespace eddy::runtime::server
