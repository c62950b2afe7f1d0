// Types of runtime of this build.
#include "base/problem.hpp"
#include "cache/acl/secret_arguments.hpp"
#include "cache/script/hook_script.hpp"
#include "runtime/cache/cache_hooks.hpp"
#include "runtime/cache/cache_server.hpp"
#include "runtime/cache/hook_check.hpp"
#include "runtime/client/client_runtime.hpp"
#include "runtime/client/options.hpp"
#include "runtime/client/script/client_library.hpp"
#include "runtime/client/script/client_script.hpp"
#include "runtime/external/external_runtime.hpp"
#include "runtime/external/options.hpp"
#include "runtime/http/options.hpp"
#include "runtime/http/script/site_callbacks.hpp"
#include "runtime/http/script/site_script.hpp"
#include "runtime/http/site.hpp"
#include "runtime/instance.hpp"
#include "runtime/options/bound_options.hpp"
#include "runtime/options/settings.hpp"
#include "runtime/program/options.hpp"
#include "runtime/program/program_runtime.hpp"
#include "runtime/proxy/datagram_proxy.hpp"
#include "runtime/proxy/options.hpp"
#include "runtime/proxy/proxy_server.hpp"
#include "runtime/proxy/script/proxy_callbacks.hpp"
#include "runtime/proxy/script/proxy_script.hpp"
#include "runtime/scripting/callback_names.hpp"
#include "runtime/server/datagram_server.hpp"
#include "runtime/server/script/server_callbacks.hpp"
#include "runtime/server/script/server_script.hpp"
#include "runtime/server/stream_server.hpp"
#include "runtime/stream/options.hpp"
#include "runtime/stream/sources/lua_source.hpp"
#include "runtime/stream/stream_runtime.hpp"
#include "runtime/type.hpp"

#include <algorithm>
#include <array>

namespace eddy::runtime {
namespace {

type server_type() {
    return {"server",
            "broadcasts messages among its clients, over TCP, UDP or a Unix socket",
            table_of(server::option_rows()),
            [](creation from) -> std::unique_ptr<instance> {
                const auto read = server::read_config(from.options);
                if (read && read->where.kind == transport::scheme::udp)
                    return std::make_unique<server::datagram_server>(std::move(from));
                return std::make_unique<server::stream_server>(std::move(from),
                                                               client::make_kept_client);
            },
            [](const settings& chosen) -> outcome<> {
                auto read = server::read_config(chosen);
                if (!read) return std::unexpected(read.error());
                return read->script ? server::try_server_script(read->script) : outcome<>();
            },
            {},
            type::restart_clients::served,
            server::replaced_grace};
}

type cache_type() {
    type made{
        "cache",
        "keeps keys and values in memory, for Redis clients",
        table_of(cache::option_rows()),
        [](creation from) -> std::unique_ptr<instance> {
            return std::make_unique<cache::cache_server>(std::move(from));
        },
        [](const settings& chosen) -> outcome<> {
            auto read = cache::read_config(chosen);
            if (!read) return std::unexpected(read.error());
            return {};
        },
        [](const settings& chosen) -> duration {
            // A dump file of a terabyte; a script that connects to a backend and is sent the
            // rest.
            duration longer = chosen.has("dir") ? duration(std::chrono::hours(1)) : duration{};
            if (chosen.has("hooks"))
                longer += cache::cache_hooks::load_patience + duration(chosen.number("hook-flush"));
            return longer;
        },
        type::restart_clients::wait,
        {},
        eddy::cache::password_parameters};
    made.check_files = [](const settings& chosen) -> outcome<> {
        return chosen.has("hooks") ? cache::check_hook_file(chosen.text("hooks")) : outcome<>();
    };
    return made;
}

type http_type() {
    return {"http", "serves the files of a folder over HTTP and HTTPS",
            table_of(http::option_rows()),
            [](creation from) -> std::unique_ptr<instance> {
                return std::make_unique<http::site>(std::move(from));
            },
            [](const settings& chosen) -> outcome<> {
                auto read = http::read_config(chosen);
                if (!read) return std::unexpected(read.error());
                return read->script ? http::try_site_script(read->script) : outcome<>();
            }};
}

type proxy_type() {
    type made{"proxy", "passes HTTP requests, or the bytes of TCP connections, on to backends",
              table_of(proxy::option_rows()),
              [](creation from) -> std::unique_ptr<instance> {
                  const auto read = proxy::read_config(from.options);
                  if (read && read->has_datagrams())
                      return std::make_unique<proxy::datagram_proxy>(std::move(from));
                  return std::make_unique<proxy::proxy_server>(std::move(from));
              },
              [](const settings& chosen) -> outcome<> {
                  auto read = proxy::read_config(chosen);
                  if (!read) return std::unexpected(read.error());
                  return read->script ? proxy::try_proxy_script(read->script) : outcome<>();
              }};
    made.check_files = [](const settings& chosen) -> outcome<> {
        auto read = proxy::read_config(chosen);
        return read ? proxy::check_files(*read) : std::unexpected(std::move(read.error()));
    };
    made.uses_others = true;
    return made;
}

type client_type() {
    type made{
        "client",
        "keeps a connection to a server: receives its messages, and sends those of `eddy send`",
        table_of(client::option_rows()),
        [](creation from) -> std::unique_ptr<instance> {
            return std::make_unique<client::client_runtime>(std::move(from));
        },
        [](const settings& chosen) -> outcome<> {
            auto read = client::read_config(chosen);
            if (!read) return std::unexpected(read.error());
            return read->script ? client::try_client_script(read->script) : outcome<>();
        },
        {},
        type::restart_clients::none,
        {},
        {},
        true};
    made.check_files = [](const settings& chosen) -> outcome<> {
        auto read = client::read_config(chosen);
        return read ? client::check_files(*read) : std::unexpected(std::move(read.error()));
    };
    made.uses_others = true;
    return made;
}

type stream_type() {
    return {"stream", "streams events to clients that a web server hands over",
            table_of(stream::option_rows()),
            [](creation from) -> std::unique_ptr<instance> {
                return std::make_unique<stream::stream_runtime>(std::move(from));
            },
            [](const settings& chosen) -> outcome<> {
                auto read = stream::read_config(chosen);
                if (!read) return std::unexpected(read.error());
                return read->script ? stream::try_stream_script(read->script) : outcome<>();
            }};
}

type program_type() {
    type made{"program",
              "runs a program: starts it again, reads its output, keeps its sockets open",
              table_of(program::option_rows()),
              [](creation from) -> std::unique_ptr<instance> {
                  return std::make_unique<program::program_runtime>(std::move(from));
              },
              [](const settings& chosen) -> outcome<> {
                  auto read = program::read_config(chosen);
                  if (!read) return std::unexpected(read.error());
                  return {};
              },
              [](const settings& chosen) -> duration {
                  return duration(chosen.number("stop-timeout")) +
                         program::program_runtime::kill_patience +
                         program::program_runtime::output_patience;
              },
              type::restart_clients::wait};
    made.check_files = [](const settings& chosen) -> outcome<> {
        auto read = program::read_config(chosen);
        return read ? program::check_files(*read) : std::unexpected(std::move(read.error()));
    };
    made.uses_others = true;
    return made;
}

type external_type() {
    return {"external",
            "watches a process that something else has started; `eddy attach` makes one",
            table_of(external::option_rows()),
            [](creation from) -> std::unique_ptr<instance> {
                return std::make_unique<external::external_runtime>(std::move(from));
            },
            [](const settings& chosen) -> outcome<> {
                auto read = external::read_config(chosen);
                if (!read) return std::unexpected(read.error());
                return {};
            },
            {},
            type::restart_clients::none};
}

std::vector<std::string_view> callbacks_of(std::string_view type) {
    if (type == "server") return names_of_callbacks(server::server_callbacks());
    if (type == "client") return names_of_callbacks(client::client_callbacks());
    if (type == "http") return names_of_callbacks(http::site_callbacks());
    if (type == "proxy") return names_of_callbacks(proxy::proxy_callbacks());
    if (type == "stream") {
        constexpr std::array<script::callback, 1> own = {{{.name = "handle"}}};
        return names_of_callbacks(own);
    }
    if (type == "program" || type == "external") return {};
    return {eddy::cache::hook_names.begin(), eddy::cache::hook_names.end()};
}

std::vector<std::string> (*functions_of_type(std::string_view type))() {
    if (type == "server") return server::server_functions;
    if (type == "client") return client::client_functions;
    if (type == "http") return http::site_functions;
    if (type == "proxy") return proxy::proxy_functions;
    if (type == "stream") return stream::stream_functions;
    if (type == "cache") return cache::hook_script_functions;
    return nullptr;
}

}  // namespace

std::span<const type> types() {
    static const std::array all = [] {
        std::array made{server_type(), client_type(), cache_type(),   http_type(),
                        proxy_type(),  stream_type(), program_type(), external_type()};
        for (type& each : made) {
            each.script_callbacks = callbacks_of(each.name);
            each.script_functions = functions_of_type(each.name);
        }
        return made;
    }();
    return all;
}

const type* find_type(std::string_view name) {
    const std::span<const type> all = types();
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const type& t) { return t.name == name; });
    return found == all.end() ? nullptr : &*found;
}

}  // namespace eddy::runtime
