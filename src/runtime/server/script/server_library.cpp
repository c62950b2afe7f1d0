// Rows of the functions of a server's script.
#include "runtime/server/script/server_library.hpp"

#include <eddy/io/timeout.hpp>
#include <eddy/transport/transport.hpp>

#include "runtime/host/local_address.hpp"
#include "script/http_fields.hpp"

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

namespace eddy::runtime::server {
namespace {

using script::answer;
using script::argument;
using script::argument_kind;
using script::invocation;
using script::library_function;
using script::value;

script_clients& clients_of(const invocation& of) noexcept { return of.context<script_clients>(); }

/// A client's number; 0 for what is none.
std::uint64_t number_of(double given) noexcept {
    constexpr double most = 281474976710656.0;  // 2^48
    return given >= 1 && given < most ? static_cast<std::uint64_t>(given) : 0;
}

script_client* client_of(const invocation& of) noexcept {
    return clients_of(of).find(number_of(of.number(1)));
}

/// The argument is the number of a client of another loop, whose state is there.
bool is_elsewhere(const invocation& of, int which = 1) noexcept {
    return clients_of(of).is_elsewhere(number_of(of.number(which)));
}
/// Nil and the reason, of functions that work on that state.
answer of_another_thread() {
    return script::values_of(value(), "the client is one of another thread");
}

value copy_of(const value& of) {
    if (const bool* const truth = of.truth()) return {*truth};
    if (const double* const number = of.number()) return {*number};
    if (const std::string* const text = of.text()) return {std::string_view(*text)};
    const script::table* const whole = of.fields();
    if (whole == nullptr) return {};
    script::table made;
    for (const value& each : whole->elements) made.elements.push_back(copy_of(each));
    for (const auto& [name, each] : whole->fields) made.fields.emplace_back(name, copy_of(each));
    return {std::move(made)};
}

/// Fits into the queue of every client.
bool is_sendable(const invocation& of, std::string_view text) noexcept {
    return text.size() <= clients_of(of).transport().max_message();
}
answer too_large() { return answer::failed("the text is longer than half of --max-queue"); }

/// Work for each client of a list, and bytes of a text that are copied in a step.
constexpr std::size_t steps_a_client = 20;
constexpr std::size_t bytes_a_step = 64;
constexpr std::size_t value_bytes_a_step = 8;  // of data_size()

// --- Routes -----------------------------------------------------------------------------------

/// Limit of a connect.
constexpr duration route_patience = std::chrono::seconds(5);

task<script::function_result> connect_route(script_clients& all, std::uint64_t id, std::string to) {
    if (all.daemon() == nullptr) co_return std::unexpected("there is no daemon here");
    auto where = find_local_address(*all.daemon(), to, all.own_name());
    if (!where) co_return std::unexpected(std::move(where.error().message));
    auto over = co_await with_timeout(route_patience, transport::connect(std::move(*where), {}));
    if (!over)
        co_return std::unexpected("\"" + to + "\" cannot be reached: " + over.error().message());
    script_client* const its = all.find(id);
    if (its == nullptr || its->peer == nullptr) co_return std::unexpected("the client has gone");
    if (!all.route(*its, std::make_shared<client_route>(std::move(to), std::move(*over))))
        co_return std::unexpected("there are 10000 routes already, which is the limit");
    co_return script::values_of(true);
}
static_assert(max_client_routes == 10'000);

answer route(invocation& of) {
    if (is_elsewhere(of)) return of_another_thread();
    const script_client* const its = client_of(of);
    if (its == nullptr || its->peer == nullptr) return answer::failed("the client has gone");
    return connect_route(clients_of(of), its->id, std::string(of.text(2)));
}

answer unroute(invocation& of) {
    if (is_elsewhere(of)) return of_another_thread();
    script_client* const its = client_of(of);
    if (its == nullptr || its->route == nullptr) return false;
    its->route->close();
    its->route = nullptr;
    return true;
}

answer get_route(invocation& of) {
    if (is_elsewhere(of)) return of_another_thread();
    const script_client* const its = client_of(of);
    if (its == nullptr || its->route == nullptr || its->route->is_closed())
        return script::values_of(value());
    return script::values_of(std::string_view(its->route->to()));
}

/// Not to another loop: the client there could not be waited for, nor its end be known.
answer pipe(invocation& of) {
    if (is_elsewhere(of, 1) || is_elsewhere(of, 2)) return of_another_thread();
    script_client* const its = client_of(of);
    const script_client* const to = clients_of(of).find(number_of(of.number(2)));
    if (its == nullptr || to == nullptr || to->peer == nullptr || its == to) return false;
    if (its->route != nullptr) its->route->close();
    its->route = nullptr;
    its->pipe = to->id;
    return true;
}

answer unpipe(invocation& of) {
    if (is_elsewhere(of)) return of_another_thread();
    script_client* const its = client_of(of);
    return its != nullptr && std::exchange(its->pipe, 0) != 0;
}

// --- Messages ----------------------------------------------------------------------------------

answer send(invocation& of) {
    const std::string_view text = of.text(2);
    if (!is_sendable(of, text)) return too_large();
    of.count(text.size() / bytes_a_step);
    script_clients& all = clients_of(of);
    const std::uint64_t id = number_of(of.number(1));
    if (script_client* const to = all.find(id)) return all.transport().send(*to, text);
    if (!all.is_elsewhere(id)) return false;
    return all.transport().send_elsewhere({.ids = {id}}, text);
}

answer broadcast(invocation& of) {
    const std::string_view text = of.text(1);
    if (!is_sendable(of, text)) return too_large();
    of.count(text.size() / bytes_a_step);
    return clients_of(of).transport().send_to_all(text);
}

answer multicast(invocation& of) {
    const std::string_view text = of.text(2);
    if (!is_sendable(of, text)) return too_large();
    auto given = of.read(1);
    if (!given)
        return answer::misused("multicast() takes a list of clients, not one with " +
                               given.error());
    script_clients& all = clients_of(of);
    std::vector<script_client*> here;
    script_receivers elsewhere;
    for (const value& each : given->fields()->elements) {
        const std::uint64_t id = each.number() == nullptr ? 0 : number_of(*each.number());
        if (script_client* const one = all.find(id))
            here.push_back(one);
        else if (all.is_elsewhere(id))
            elsewhere.ids.push_back(id);
    }
    of.count(here.size() * steps_a_client + text.size() / bytes_a_step);
    const std::size_t took = all.transport().send_to_each(here, text);
    if (!elsewhere.ids.empty())
        static_cast<void>(all.transport().send_elsewhere(std::move(elsewhere), text));
    return script::values_of(took);
}

// --- Clients -----------------------------------------------------------------------------------

answer connections(invocation& of) {
    return script::values_of(clients_of(of).transport().connections());
}

answer clients(invocation& of) {
    script::table made;
    for (const script_client* const each : clients_of(of).all())
        made.elements.emplace_back(each->id);
    of.count(made.elements.size() * steps_a_client);
    return script::values_of(std::move(made));
}

answer peer_ip(invocation& of) {
    if (is_elsewhere(of)) return of_another_thread();
    const script_client* const one = client_of(of);
    if (one == nullptr || one->peer == nullptr) return script::values_of(value());
    return script::values_of(clients_of(of).transport().ip_of(*one));
}

answer ws_headers(invocation& of) {
    if (is_elsewhere(of)) return of_another_thread();
    const script_client* const one = client_of(of);
    if (one == nullptr || one->web_fields == nullptr) return script::values_of(value());
    of.count(one->web_fields->size() * steps_a_client);
    return script::values_of(script::fields_of(*one->web_fields));
}

answer disconnect(invocation& of) {
    script_clients& all = clients_of(of);
    const std::uint64_t id = number_of(of.number(1));
    if (script_client* const one = all.find(id)) {
        const bool is_there = one->peer != nullptr;
        if (is_there) all.transport().disconnect(*one);
        return is_there;
    }
    if (!all.is_elsewhere(id)) return false;
    return all.transport().send_elsewhere({.ids = {id}, .disconnects = true}, {});
}

answer set_data(invocation& of) {
    if (is_elsewhere(of)) return of_another_thread();
    script_client* const one = client_of(of);
    if (one == nullptr) return false;
    const std::string_view key = of.text(2);
    const auto found = one->data.find(key);
    std::size_t& all = clients_of(of).data_bytes();
    const std::size_t before =
        found == one->data.end() ? 0 : data_size(found->first, found->second);
    if (!of.has(3)) {
        all -= before;
        if (found != one->data.end()) one->data.erase(found);
        return true;
    }
    if (key.size() > max_client_key) return answer::failed("the key is longer than 256 bytes");
    if (found == one->data.end() && one->data.size() >= max_client_keys)
        return answer::failed("the client has 1000 keys already, which is the limit");
    auto given = of.read(3);
    if (!given) return answer::misused("set_data() cannot keep " + given.error());
    if (given->text() != nullptr && given->text()->size() > max_client_value)
        return answer::failed("the value is longer than 64 KiB");
    const std::size_t after = data_size(key, *given);
    if (after > before && all - before + after > clients_of(of).max_data_bytes())
        return answer::failed("the data of all clients would be larger than --lua-memory");
    if (found == one->data.end())
        one->data.emplace(key, std::move(*given));
    else
        found->second = std::move(*given);
    all += after - before;
    return true;
}

answer get_data(invocation& of) {
    if (is_elsewhere(of)) return of_another_thread();
    const script_client* const one = client_of(of);
    if (one == nullptr) return script::values_of(value());
    const auto found = one->data.find(of.text(2));
    if (found == one->data.end()) return script::values_of(value());
    of.count(data_size(found->first, found->second) / value_bytes_a_step);
    return script::values_of(copy_of(found->second));
}

answer del_data(invocation& of) {
    if (is_elsewhere(of)) return of_another_thread();
    script_client* const one = client_of(of);
    if (one == nullptr) return false;
    const auto found = one->data.find(of.text(2));
    if (found == one->data.end()) return false;
    clients_of(of).data_bytes() -= data_size(found->first, found->second);
    one->data.erase(found);
    return true;
}

// --- Groups ------------------------------------------------------------------------------------

answer join_group(invocation& of) {
    if (is_elsewhere(of)) return of_another_thread();
    script_client* const one = client_of(of);
    if (one == nullptr || one->peer == nullptr) return false;
    const std::string_view group = of.text(2);
    if (group.empty() || group.size() > max_group_name)
        return answer::failed("the name of a group has 1 to 256 bytes");
    if (!one->groups.contains(group) && one->groups.size() >= max_client_groups)
        return answer::failed("the client is in 100 groups already, which is the limit");
    clients_of(of).join(*one, group);
    return true;
}

answer leave_group(invocation& of) {
    if (is_elsewhere(of)) return of_another_thread();
    script_client* const one = client_of(of);
    if (one == nullptr || !one->groups.contains(of.text(2))) return false;
    clients_of(of).part(*one, of.text(2));
    return true;
}

answer group_send(invocation& of) {
    const std::string_view text = of.text(2);
    if (!is_sendable(of, text)) return too_large();
    script_clients& all = clients_of(of);
    const std::vector<script_client*> to = all.members(of.text(1));
    of.count(to.size() * steps_a_client + text.size() / bytes_a_step);
    const std::size_t took = all.transport().send_to_each(to, text);
    if (all.has_others())
        static_cast<void>(all.transport().send_elsewhere({.group = std::string(of.text(1))}, text));
    return script::values_of(took);
}

answer groups(invocation& of) {
    script::table made;
    if (const script_client* const one = client_of(of))
        for (const std::string& each : one->groups) made.elements.emplace_back(each);
    return script::values_of(std::move(made));
}

answer group_members(invocation& of) {
    script::table made;
    for (const script_client* const each : clients_of(of).members(of.text(1)))
        made.elements.emplace_back(each->id);
    of.count(made.elements.size() * steps_a_client);
    return script::values_of(std::move(made));
}

// --- Rows --------------------------------------------------------------------------------------

constexpr argument client_argument{.name = "client", .kind = argument_kind::number};
constexpr argument text_argument{.name = "text", .kind = argument_kind::text};
constexpr argument key_argument{.name = "key", .kind = argument_kind::text};
constexpr argument group_argument{.name = "group", .kind = argument_kind::text};

constexpr std::array<library_function, 21> rows = {{
    {.name = "send",
     .arguments = {{client_argument, text_argument}},
     .takes = "a client and a text",
     .help = "Sends the client a message. False when it has gone, or reads too slowly.",
     .run = send},
    {.name = "broadcast",
     .arguments = {{text_argument}},
     .takes = "a text",
     .help = "Sends a message to all clients, the one whose callback runs included.",
     .run = broadcast},
    {.name = "multicast",
     .arguments = {{{.name = "clients", .kind = argument_kind::table}, text_argument}},
     .takes = "a list of clients and a text",
     .help = "Sends a message to some clients; it is encoded once. Returns how many took it; with "
             "--threads, those of other threads do not count.",
     .run = multicast},
    {.name = "connections", .help = "Number of clients, of all threads.", .run = connections},
    {.name = "clients",
     .help = "List of the clients; with --threads, those of this thread.",
     .run = clients},
    {.name = "peer_ip",
     .arguments = {{client_argument}},
     .takes = "a client",
     .help = "The client's address without its port; nil when it has gone.",
     .run = peer_ip},
    {.name = "ws_headers",
     .arguments = {{client_argument}},
     .takes = "a client",
     .help = "Table of the headers of the request that made the client a WebSocket, by names in "
             "lower case; nil for other clients.",
     .run = ws_headers},
    {.name = "disconnect",
     .arguments = {{client_argument}},
     .takes = "a client",
     .help = "Closes the client's connection, after what was sent to it. False when it has gone.",
     .run = disconnect},
    {.name = "route",
     .arguments = {{client_argument, {.name = "runtime", .kind = argument_kind::text}}},
     .takes = "a client and the name of a runtime",
     .help =
         "Passes the client's messages on to another runtime, over a connection of its own, and "
         "that one's lines to the client. True, or nil and the reason.",
     .waits = true,
     .failure = script::on_failure::returns,
     .run = route},
    {.name = "unroute",
     .arguments = {{client_argument}},
     .takes = "a client",
     .help = "Ends a route: the script gets the client's messages again. False without one.",
     .run = unroute},
    {.name = "get_route",
     .arguments = {{client_argument}},
     .takes = "a client",
     .help = "The runtime that the client's messages go to; nil without one.",
     .run = get_route},
    {.name = "pipe",
     .arguments = {{client_argument, {.name = "other", .kind = argument_kind::number}}},
     .takes = "two clients",
     .help = "Passes the client's messages on to another client, until that has gone. False "
             "without it; with --threads, nil and the reason for one of another thread.",
     .run = pipe},
    {.name = "unpipe",
     .arguments = {{client_argument}},
     .takes = "a client",
     .help = "Ends a pipe. False without one.",
     .run = unpipe},
    {.name = "set_data",
     .arguments = {{client_argument, key_argument, {.name = "value", .is_optional = true}}},
     .takes = "a client, a key and a value",
     .help = "Keeps a value with the client, until its on_disconnect has ended; nil deletes it. It "
             "outlasts a reload of the script.",
     .run = set_data},
    {.name = "get_data",
     .arguments = {{client_argument, key_argument}},
     .takes = "a client and a key",
     .help = "The value that set_data has kept; nil without one.",
     .run = get_data},
    {.name = "del_data",
     .arguments = {{client_argument, key_argument}},
     .takes = "a client and a key",
     .help = "Deletes such a value. False when there is none.",
     .run = del_data},
    {.name = "join_group",
     .arguments = {{client_argument, group_argument}},
     .takes = "a client and the name of a group",
     .help = "Puts the client into a group, such as a room. It leaves when it disconnects.",
     .run = join_group},
    {.name = "leave_group",
     .arguments = {{client_argument, group_argument}},
     .takes = "a client and the name of a group",
     .help = "Takes the client out of a group. False when it is not in it.",
     .run = leave_group},
    {.name = "group_send",
     .arguments = {{group_argument, text_argument}},
     .takes = "the name of a group and a text",
     .help = "Sends a message to all clients of a group, of all threads. Returns how many took it; "
             "those of other threads do not count.",
     .run = group_send},
    {.name = "groups",
     .arguments = {{client_argument}},
     .takes = "a client",
     .help = "List of the client's groups.",
     .run = groups},
    {.name = "group_members",
     .arguments = {{group_argument}},
     .takes = "the name of a group",
     .help = "List of the clients of a group; with --threads, those of this thread.",
     .run = group_members},
}};

/// A value and its place in a table.
std::size_t size_of(const value& of) noexcept {
    constexpr std::size_t place = 64;
    if (const std::string* const text = of.text()) return place + text->size();
    const script::table* const whole = of.fields();
    std::size_t sum = place;
    if (whole == nullptr) return sum;
    for (const value& each : whole->elements) sum += size_of(each);
    for (const auto& [name, each] : whole->fields) sum += name.size() + size_of(each);
    return sum;
}

}  // namespace

std::size_t data_size(std::string_view key, const value& of) noexcept {
    return key.size() + size_of(of);
}

script::library server_library(script_clients& of) {
    return {.name = "self", .functions = rows, .context = &of};
}

}  // namespace eddy::runtime::server
