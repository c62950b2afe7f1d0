// Fixture of the tests of proxies: backends in the test's own hands.
#pragma once

#include <eddy/io/loop.hpp>
#include <eddy/io/stream.hpp>

#include "runtime/testing.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace eddy::runtime::proxy::testing {

using namespace runtime::testing;

/// A listener whose connections the test accepts, one by one.
class backend_end {
public:
    backend_end() : listening_(must(loop::current().listen(must(endpoint::ip("127.0.0.1", 0))))) {}

    /// As --backend takes it.
    std::string address() const { return listening_.local().to_string(); }
    /// The label of its metrics.
    std::string name() const { return "tcp://" + address(); }
    std::uint16_t port() const { return listening_.local().port(); }

    task<talker> accept() { co_return talker(must(co_await listening_.accept())); }
    void close() { listening_.close(); }

private:
    listener listening_;
};

/// An address that refuses connections.
inline std::string dead_address() { return backend_end().address(); }

/// Options of a proxy before these backends.
inline json before(const std::vector<std::string>& backends, json options = {}) {
    std::string all;
    for (const std::string& each : backends) all += (all.empty() ? "" : ",") + each;
    options["backend"] = all;
    return with(options);
}

/// A client and the other end of its tunnel.
struct tunnel_ends {
    talker client;
    talker backend;
};

/// A client through the proxy to this backend.
inline task<tunnel_ends> through(subject& proxy, backend_end& to) {
    talker client = co_await talker::to(proxy->local());
    talker backend = co_await to.accept();
    co_return tunnel_ends{std::move(client), std::move(backend)};
}

/// The error at the end of a client's connection that gets no backend and not a byte. It may be
/// reset before connect() has returned.
inline task<std::error_code> end_of_rejected(subject& proxy) {
    result<stream> made = co_await loop::current().connect(proxy->local());
    if (!made) co_return made.error();
    talker client(std::move(*made));
    const last_bytes rest = co_await rest_of(client);
    co_return rest.text.empty() ? rest.end : std::error_code();
}

/// The metric's values by backend.
inline std::map<std::string, double> by_backend(subject& of, std::string_view metric) {
    std::map<std::string, double> found;
    for (const metric_sample& each : of->count().samples)
        if (each.of->name == metric) found[each.labels[0]] = std::get<double>(each.value);
    return found;
}

}  // namespace eddy::runtime::proxy::testing
