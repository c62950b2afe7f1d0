// MIGRATE: its arguments, and the choice of those keys that exist.
#include "cache/catalog/commands.hpp"
#include "cache/clients/waits.hpp"
#include "cache/engine/call.hpp"
#include "cache/engine/server_host.hpp"
#include "cache/replication/migration.hpp"
#include "cache/replication/replication.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

namespace eddy::cache::commands {
namespace {

constexpr std::chrono::milliseconds usual_patience{1000};

// MIGRATE host port key|"" database timeout [COPY] [REPLACE] [AUTH password | AUTH2 user password]
// [KEYS key...]
std::optional<migration_order> order_of(call& c) {
    migration_order order;
    std::size_t first = 3;
    std::size_t end = 4;
    for (std::size_t i = 6; i < c.count; ++i) {
        const std::size_t left = c.count - 1 - i;
        if (is_word(c.arg(i), "copy")) {
            order.copies = true;
        } else if (is_word(c.arg(i), "replace")) {
            order.replaces = true;
        } else if (is_word(c.arg(i), "auth") && left >= 1) {
            order.has_password = true;
            order.user.clear();
            order.password = c.arg(++i);
        } else if (is_word(c.arg(i), "auth2") && left >= 2) {
            order.has_password = true;
            order.user = c.arg(++i);
            order.password = c.arg(++i);
        } else if (is_word(c.arg(i), "keys")) {
            if (!c.arg(3).empty()) {
                c.error(
                    "ERR When using MIGRATE KEYS option, the key argument must be set to the "
                    "empty string");
                return std::nullopt;
            }
            first = i + 1;
            end = c.count;
            break;
        } else {
            c.syntax_error();
            return std::nullopt;
        }
    }
    if (end - first > migration::most_keys) {
        c.error("ERR MIGRATE takes " + std::to_string(migration::most_keys) +
                " keys at most: send the others with another one");
        return std::nullopt;
    }
    const auto patience_ms = c.integer(5);
    if (!patience_ms) return std::nullopt;
    const auto database = c.integer(4);
    if (!database) return std::nullopt;
    constexpr std::int64_t longest_ms = 1'000'000'000'000;
    order.patience = *patience_ms <= 0
                         ? usual_patience
                         : std::chrono::milliseconds(std::min(*patience_ms, longest_ms));
    order.database = *database;
    order.host = c.arg(1);
    order.port = c.arg(2);
    order.from = c.keys->number();
    std::unordered_set<std::string_view> seen;
    for (std::size_t i = first; i < end; ++i) {
        const bool is_there = c.find_to_read(c.arg(i)) != nullptr;
        if (is_there && seen.insert(c.arg(i)).second) order.keys.emplace_back(c.arg(i));
    }
    return order;
}

}  // namespace

void migrate(call& c) {
    auto order = order_of(c);
    if (!order) return;
    if (order->keys.empty()) return c.reply.simple("NOKEY");
    engine_state& s = c.state;
    if (!may_wait(c)) {
        return c.error(
            "ERR MIGRATE waits for the other server, which nothing can within a transaction or a "
            "script");
    }
    if (!order->copies && s.replication.replicating != nullptr &&
        s.replication.replicating->is_replica())
        return c.error("ERR a replica's keys are its master's: use MIGRATE with COPY");
    if (s.server == nullptr) return c.error("ERR there is no server that could connect");
    if (s.replication.migrating != nullptr && s.replication.migrating->count() >= migration::most) {
        return c.error("ERR " + std::to_string(migration::most) +
                       " MIGRATE commands are under way: try again later, or send several keys "
                       "with one");
    }
    auto made = std::make_unique<migration>(s, c.client.id, std::move(*order));
    wait_for_server(c);
    s.server->migrate(c.client.id, std::move(made));
}

}  // namespace eddy::cache::commands
