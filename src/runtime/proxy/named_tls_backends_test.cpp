// Backends over TLS that are named in DNS: the certificate is for the name, at each address.
#include <eddy/tls/tls.hpp>

#include "net/dns_server.hpp"
#include "runtime/proxy/testing.hpp"
#include "tls/testing.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <utility>

namespace eddy::runtime::proxy {
namespace {

using namespace proxy::testing;
using eddy::testing::dns_server;

class named_tls_backends : public on_io_backend {};
// The simulator has no DNS.
INSTANTIATE_TEST_SUITE_P(io, named_tls_backends,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll),
                         eddy::testing::io_backend_name);

TEST_P(named_tls_backends, are_verified_by_their_name) {
    const temporary_folder folder;
    std::ofstream(folder.file("ca.pem")) << tls::test_authority().pem();
    const tls::certificate own =
        tls::test_authority().issue({.subject = "db", .names = {"DNS:db.test"}});
    run([&]() -> task<void> {
        scope tasks(co_await current_source());
        {
            dns_server names(tasks);
            names.records["db.test"] = {"127.0.0.1"};
            names.records["other.test"] = {"127.0.0.1"};
            listener at =
                tls::listen(must(loop::current().listen(must(endpoint::ip("127.0.0.1", 0)))),
                            tls::must(tls::context::server({.certificates = {own}})));
            const auto options = [&](std::string name) {
                return with({{"resolver", names.address()},
                             {"backend", "tls://" + name + ":" + std::to_string(at.local().port()) +
                                             "?ca=" + folder.file("ca.pem")}});
            };
            subject s("proxy", options("db.test"));
            co_await s.start();
            talker client = co_await talker::to(s->local());
            talker backend(must(co_await at.accept()));
            co_await client.say("question\n");
            EXPECT_EQ(co_await backend.line(), "question");
            must_do(s->apply(s.parse(options("other.test"))));
            co_await until([&] {
                return by_backend(s, "backend_up").begin()->first.starts_with("tls://other.test:");
            });
            tasks.spawn([](listener& from) -> task<void> {
                talker refused(must(co_await from.accept()));
                EXPECT_EQ(co_await refused.rest(), "");
            }(at));
            EXPECT_EQ(co_await end_of_rejected(s), errno_code(ECONNRESET));
            co_await s->stop(0s);
            tasks.cancel();
            co_await tasks.join();
        }
    });
}

}  // namespace
}  // namespace eddy::runtime::proxy
