// SHUTDOWN; in admin mode only.
#include "cache/catalog/commands.hpp"
#include "cache/clients/waits.hpp"
#include "cache/engine/call.hpp"
#include "cache/engine/server_host.hpp"
#include "cache/script/scripting.hpp"

namespace eddy::cache::commands {

// The daemon does it, so that it is not started again as what runs should.
void shutdown(call& c) {
    using saving = shutdown_request::saving;
    shutdown_request how;
    bool is_abort = false;
    for (std::size_t i = 1; i < c.count; ++i) {
        const bool saves = is_word(c.arg(i), "save");
        if (saves || is_word(c.arg(i), "nosave")) {
            const saving wanted = saves ? saving::always : saving::never;
            if (how.saves != saving::by_points && how.saves != wanted) return c.syntax_error();
            how.saves = wanted;
        } else if (is_word(c.arg(i), "force")) {
            how.forced = true;
        } else if (is_word(c.arg(i), "abort")) {
            is_abort = true;
        } else if (is_word(c.arg(i), "now")) {
            how.at_once = true;
        } else {
            return c.syntax_error();
        }
    }
    if (is_abort && c.count != 2) return c.syntax_error();
    server_host* const server = c.state.server;
    if (is_abort) {
        if (server != nullptr && server->abort_shutdown()) return c.reply.ok();
        return c.error("ERR No shutdown in progress.");
    }
    // Half of what a script does would be saved.
    if (how.saves != saving::never && scripting::is_late(c.state))
        return c.error(scripting::busy_text(c.state));
    if (server == nullptr || !server->can_shut_down()) {
        return c.error("ERR a cache is stopped by its daemon: run `eddy stop` with its name");
    }
    if (how.saves == saving::always && settings_of(server).dir.empty() &&
        !c.state.settings.options.append.enabled && !how.forced) {
        return c.error("ERR this cache keeps nothing on disk: create it with --dir FOLDER");
    }
    wait_for_server(c);
    server->shut_down(c.client.id, how);
}

}  // namespace eddy::cache::commands
