// Functions of a client's script.
#include "runtime/client/script/client_library.hpp"

#include <array>

namespace eddy::runtime::client {
namespace {

using script::answer;
using script::argument_kind;
using script::invocation;
using script::library_function;

script_link& link_of(const invocation& of) noexcept { return of.context<script_link>(); }

answer send(invocation& of) {
    auto queued = link_of(of).queue(of.text(1));
    if (!queued) return answer::failed(queued.error().message);
    return *queued;
}

answer connected(invocation& of) { return link_of(of).is_connected(); }

answer disconnect(invocation& of) { return link_of(of).disconnect(); }

constexpr std::array<library_function, 3> rows = {{
    {.name = "send",
     .arguments = {{{.name = "text", .kind = argument_kind::text}}},
     .takes = "a text",
     .help = "Queues a message for the server, past on_send. False when the queue is full, or the "
             "client has given up.",
     .run = send},
    {.name = "connected", .help = "True while there is a connection.", .run = connected},
    {.name = "disconnect",
     .help = "Closes the connection, after what is queued; the client connects again. False "
             "without one.",
     .run = disconnect},
}};

}  // namespace

script::library client_library(script_link& of) {
    return {.name = "self", .functions = rows, .context = &of};
}

}  // namespace eddy::runtime::client
