// CONFIG and TIME.
#include "cache/catalog/commands.hpp"
#include "cache/clients/waits.hpp"
#include "cache/config/config.hpp"
#include "cache/engine/call.hpp"
#include "cache/engine/server_host.hpp"
#include "cache/replication/replication.hpp"
#include "cache/types/timed_fields.hpp"

namespace eddy::cache::commands {

void config_resetstat(call& c) {
    statistics& n = c.state.data.env.counters;
    const std::uint64_t sessions = n.sessions;
    n = {};
    n.sessions = sessions;
    c.state.commands.reset();
    c.state.clients.refusals.reset_counts();
    if (replication* const its = c.state.replication.replicating.get(); its != nullptr)
        its->full_copies = its->continued = its->not_continued = 0;
    c.state.forget_moved();
    if (c.state.data.env.fields != nullptr) c.state.data.env.fields->ended = 0;
    c.state.peak_memory = c.state.used_memory();
    c.reply.ok();
}

void config_rewrite(call& c) {
    server_host* const server = c.state.server;
    if (server == nullptr || !server->can_keep_config())
        return c.error("ERR The server is running without a config file");
    if (!may_wait(c)) {
        // Sentinel sends it in a transaction, which does not wait: the log has the outcome.
        server->keep_config(0);
        return c.reply.ok();
    }
    wait_for_server(c);
    server->keep_config(c.client.id);
}

void config_help(call& c) {
    c.help({"CONFIG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
            "GET <pattern> [<pattern> ...]", "    The parameters that match.",
            "SET <parameter> <value> [<parameter> <value> ...]", "    Change them all.",
            "RESETSTAT", "    Set INFO's counters to zero.", "REWRITE",
            "    Keep what was changed for the next start.", "HELP", "    Print this help."});
}

void time(call& c) {
    constexpr std::int64_t second_us = 1'000'000;
    c.reply.array(2);
    c.reply.bulk_integer(c.state.data.env.now_us / second_us);
    c.reply.bulk_integer(c.state.data.env.now_us % second_us);
}

}  // namespace eddy::cache::commands
