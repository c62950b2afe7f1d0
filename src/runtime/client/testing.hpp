// Fixtures of the client's tests: servers that it connects to.
#pragma once

#include "runtime/testing.hpp"

#include <string>
#include <utility>

namespace eddy::runtime::client::testing {

using namespace runtime::testing;

inline listener server_on(endpoint where, const listen_options& options = {}) {
    return must(loop::current().listen(where, options));
}
inline listener any_server(const listen_options& options = {}) {
    return server_on(must(endpoint::ip("127.0.0.1", 0)), options);
}
/// Options of a client of the server, and more.
inline json to(const listener& server, json more = json::object()) {
    more["target"] = server.local().to_string();
    return more;
}
inline task<talker> accept(listener& at) { co_return talker(must(co_await at.accept())); }

/// An address at which nothing listens now.
inline endpoint closed_address() { return any_server().local(); }

/// Waits until the client is connected.
inline task<void> connected(subject& client) {
    co_await until([&] { return sample_of(*client, "connected") == 1.0; });
}

/// Waits until an attempt of the client has failed, or its connection has ended.
inline task<void> disconnected(subject& client) {
    co_await until([&] { return !client->fault().empty(); });
}

}  // namespace eddy::runtime::client::testing
