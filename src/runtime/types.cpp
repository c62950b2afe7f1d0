// Types of runtime of this build.
#include "base/problem.hpp"
#include "cache/acl/secret_arguments.hpp"
#include "runtime/cache/cache_hooks.hpp"
#include "runtime/cache/cache_server.hpp"
#include "runtime/client/client_runtime.hpp"
#include "runtime/http/options.hpp"
#include "runtime/http/site.hpp"
#include "runtime/instance.hpp"
#include "runtime/options/bound_options.hpp"
#include "runtime/options/settings.hpp"
#include "runtime/proxy/options.hpp"
#include "runtime/proxy/proxy_server.hpp"
#include "runtime/server/datagram_server.hpp"
#include "runtime/server/stream_server.hpp"
#include "runtime/stream/options.hpp"
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
                return std::make_unique<server::stream_server>(std::move(from));
            },
            [](const settings& chosen) -> outcome<> {
                auto read = server::read_config(chosen);
                if (!read) return std::unexpected(read.error());
                return {};
            },
            {},
            type::restart_clients::served,
            server::replaced_grace};
}

type cache_type() {
    return {"cache",
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
                    longer +=
                        cache::cache_hooks::load_patience + duration(chosen.number("hook-flush"));
                return longer;
            },
            type::restart_clients::wait,
            {},
            eddy::cache::password_parameters};
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
                return {};
            }};
}

type proxy_type() {
    return {"proxy", "forwards TCP connections to backends, such as databases, byte for byte",
            table_of(proxy::option_rows()),
            [](creation from) -> std::unique_ptr<instance> {
                return std::make_unique<proxy::proxy_server>(std::move(from));
            },
            [](const settings& chosen) -> outcome<> {
                auto read = proxy::read_config(chosen);
                if (!read) return std::unexpected(read.error());
                return {};
            }};
}

type client_type() {
    return {"client",
            "connects to a server, and writes the lines that it receives to its journal",
            client::option_table(),
            [](creation from) -> std::unique_ptr<instance> {
                return std::make_unique<client::client_runtime>(std::move(from));
            },
            client::check,
            {},
            type::restart_clients::none};
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
                return {};
            }};
}

}  // namespace

std::span<const type> types() {
    static const std::array all{server_type(), client_type(), cache_type(),
                                http_type(),   proxy_type(),  stream_type()};
    return all;
}

const type* find_type(std::string_view name) {
    const std::span<const type> all = types();
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const type& t) { return t.name == name; });
    return found == all.end() ? nullptr : &*found;
}

}  // namespace eddy::runtime
