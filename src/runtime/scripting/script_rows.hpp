// Options of a script, the same for every type that runs one: --lua, and its budgets.
#pragma once

#include <eddy/io/timer.hpp>

#include "base/problem.hpp"
#include "runtime/options/bound_options.hpp"
#include "runtime/options/option.hpp"
#include "runtime/options/settings.hpp"
#include "runtime/scripting/script_options.hpp"
#include "script/script_check.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::runtime {

/// Bytes of a script's file at most.
inline constexpr std::size_t max_script_file = script::max_script_bytes;

/// Part of a type's configuration; it is named `script` there.
struct script_config {
    std::string path = {};                  ///< empty: no script
    script_file file = {};                  ///< read when the options are
    std::vector<std::string> modules = {};  ///< folders for require()
    bool is_unsafe = false;                 ///< blocking() is allowed
    std::size_t memory = 0;
    duration slice{};
    duration time{};
    std::size_t max_timers = 0;
    std::size_t max_sockets = 0;
    std::size_t max_queue = 0;  ///< messages that wait for a subscription
    std::size_t body = 0;       ///< bytes of a request's content, of types with script_body_row()
    bool admin = false;         ///< it may change the daemon's runtimes

    explicit operator bool() const noexcept { return !path.empty(); }
};

/// Limits of a script, for script_rows().
template <class Config>
bound_options<Config> script_limit_rows() {
    using row = bound_option<Config>;
    constexpr auto of = [](auto member) { return nested(&Config::script, member); };
    return {
        row::bound(of(&script_config::memory),
                   {.name = "lua-memory",
                    .kind = option_kind::size,
                    .value_name = "SIZE",
                    .default_value = "64MiB",
                    .help = "memory of the script's values, for each of --threads; what needs more "
                            "fails",
                    .minimum = std::int64_t{1} << 20,
                    .maximum = std::int64_t{1} << 36}),
        row::bound(of(&script_config::slice),
                   {.name = "lua-slice",
                    .kind = option_kind::duration,
                    .value_name = "TIME",
                    .default_value = "1ms",
                    .help = "time that a callback may compute before other connections have their "
                            "turn; it goes on after them, a sixteenth of it at a time",
                    .minimum = 50'000,
                    .maximum = 1'000'000'000}),
        row::bound(of(&script_config::time),
                   {.name = "lua-time",
                    .kind = option_kind::duration,
                    .value_name = "TIME",
                    .default_value = "500ms",
                    .help = "time of the processor that a callback may take between two waits; one "
                            "that takes longer is ended with an error",
                    .minimum = 1'000'000,
                    .maximum = std::int64_t{3600} * 1'000'000'000}),
        row::bound(of(&script_config::max_timers),
                   {.name = "lua-max-timers",
                    .kind = option_kind::integer,
                    .value_name = "N",
                    .default_value = "10000",
                    .help = "timers of the script at a time, for each of --threads; a further one "
                            "is an error",
                    .maximum = 1'000'000}),
        row::bound(of(&script_config::max_sockets),
                   {.name = "lua-max-sockets",
                    .kind = option_kind::integer,
                    .value_name = "N",
                    .default_value = "1000",
                    .help = "sockets of eddy.tcp() and eddy.udp() at a time, for each of "
                            "--threads, kept ones included; at the limit there is no further one",
                    .maximum = 100'000}),
        row::bound(of(&script_config::max_queue),
                   {.name = "lua-max-queue",
                    .kind = option_kind::integer,
                    .value_name = "N",
                    .default_value = "1024",
                    .help = "messages that wait for a subscription of the script; further ones are "
                            "lost to it, and counted",
                    .minimum = 1,
                    .maximum = 1'000'000}),
    };
}

/// `former_name` is that of --lua.
template <class Config>
bound_options<Config> script_rows(std::string_view former_name = {}) {
    using row = bound_option<Config>;
    constexpr auto of = [](auto member) { return nested(&Config::script, member); };
    bound_options<Config> own = {
        row::whole_path(of(&script_config::path),
                        {.name = "lua",
                         .value_name = "FILE",
                         .help = "Lua script that decides what the runtime does; `eddy reload-lua` "
                                 "loads it again while connections stay",
                         .is_path = true,
                         .former_name = former_name}),
        row::read_by(of(&script_config::modules),
                     {.name = "lua-path",
                      .kind = option_kind::list,
                      .value_name = "DIR",
                      .help = "folder of modules for require(): NAME.lua or NAME/init.lua; may be "
                              "given again",
                      .is_path = true},
                     [](const settings& chosen, const Config&)
                         -> outcome<std::vector<std::string>> { return chosen.list("lua-path"); }),
        row::bound(
            of(&script_config::is_unsafe),
            {.name = "lua-unsafe",
             .kind = option_kind::flag,
             .help = "the script may call functions that block on threads of their own, with "
                     "files, programs and modules of C: eddy.blocking()"}),
        row::bound(of(&script_config::admin),
                   {.name = "lua-admin",
                    .kind = option_kind::flag,
                    .help = "lets the script create, start, stop, edit and remove runtimes of the "
                            "daemon, by eddy.create() and its like"}),
    };
    return joined({std::move(own), script_limit_rows<Config>()});
}

/// Limit of the requests that a script answers, of types that serve HTTP.
template <class Config>
bound_option<Config> script_body_row() {
    return bound_option<Config>::bound(
        nested(&Config::script, &script_config::body),
        {.name = "lua-body",
         .kind = option_kind::size,
         .value_name = "SIZE",
         .default_value = "1MiB",
         .help = "largest content of a request that on_http_request is called for; 413 beyond it",
         .maximum = std::int64_t{1} << 30});
}

/// Reads the file of --lua, and refuses --lua-memory and its like without one. `takes_requests`:
/// the type has script_body_row().
outcome<> read_script_file(const settings& chosen, script_config& into,
                           bool takes_requests = false);

}  // namespace eddy::runtime
