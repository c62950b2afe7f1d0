// The list of commands.
#include "cli/commands/commands.hpp"

namespace eddy::cli {

std::vector<command> all_commands() {
    return {
        create_command(),   add_command(),     start_command(),      stop_command(),
        restart_command(),  reload_command(),  reload_lua_command(), remove_command(),
        send_command(),     attach_command(),  ls_command(),         ps_command(),
        show_command(),     stats_command(),   top_command(),        events_command(),
        wait_command(),     edit_command(),    rename_command(),     owner_command(),
        logs_command(),     up_command(),      down_command(),       diff_command(),
        validate_command(), export_command(),  cluster_command(),    db_command(),
        script_command(),   console_command(), bench_command(),      completion_command(),
        version_command(),
    };
}

}  // namespace eddy::cli
