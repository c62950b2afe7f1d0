// Routes of TLS connections: the most specific one, and the reading of ClientHellos.
#include "proxy/tls_routes.hpp"

#include <eddy/io/loop.hpp>

#include "proxy/testing.hpp"
#include "wire/client_hello/transcript.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace eddy::proxy {
namespace {

using namespace proxy::testing;
using client_hello::contents;

TEST(tls_routes, the_most_specific_one_is_found) {
    const tls_route_table table({{"", ""},
                                 {"", "acme-tls/1"},
                                 {"*.example", ""},
                                 {"*.b.example", "h2"},
                                 {"a.example", ""},
                                 {"a.example", "h2"},
                                 {"a.example", "http/1.1"}});
    const auto found = [&](const contents& of) {
        const tls_route* const to = table.find(of);
        return to == nullptr ? "none" : to->host + "/" + to->alpn;
    };
    EXPECT_EQ(found({}), "/");
    EXPECT_EQ(found({"other", {}}), "/");
    EXPECT_EQ(found({"", {"acme-tls/1"}}), "/acme-tls/1");
    EXPECT_EQ(found({"a.example", {}}), "a.example/");
    EXPECT_EQ(found({"a.example", {"acme-tls/1"}}), "a.example/") << "hosts count before protocols";
    EXPECT_EQ(found({"a.example", {"x", "http/1.1", "h2"}}), "a.example/http/1.1");
    EXPECT_EQ(found({"a.example", {"h2", "http/1.1"}}), "a.example/h2");
    EXPECT_EQ(found({"x.b.example", {"h2"}}), "*.b.example/h2");
    EXPECT_EQ(found({"x.b.example", {}}), "*.example/");
    EXPECT_EQ(found({"example", {}}), "/");
    EXPECT_EQ(tls_route_table({{"a", ""}}).find({}), nullptr);
}

class tls_hellos : public eddy::testing::on_io_backend {
protected:
    /// Reads the hello of a client that sends these pieces.
    void read(const std::vector<std::string>& pieces, bool ends, result<contents>& found,
              std::string& received) {
        run([&]() -> task<void> {
            listener front = must(loop::current().listen(must(endpoint::ip("127.0.0.1", 0))));
            auto client = must(co_await loop::current().connect(front.local()));
            stream accepted = must(co_await front.accept());
            co_await with_scope([&](scope& sending) -> task<void> {
                sending.spawn(send(client, pieces, ends));
                byte_buffer all;
                found = co_await read_hello(accepted, all);
                received = all.text();
            });
        });
    }

private:
    static task<void> send(stream& to, const std::vector<std::string>& pieces, bool ends) {
        for (const std::string& each : pieces) {
            must(co_await to.write_all(each));
            // Its end may be the test's.
            if (!co_await loop::current().sleep_for(5ms)) co_return;
        }
        if (ends) must(to.shutdown_write());
    }
};

INSTANTIATE_TEST_SUITE_P(proxy, tls_hellos,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll,
                                           io_backend_kind::sim),
                         eddy::testing::io_backend_name);

TEST_P(tls_hellos, come_in_pieces_and_are_kept) {
    using namespace client_hello;
    const std::string hello =
        records_of(hello_of(server_name_of("a.example") + alpn_of({"h2"})), 20) + "behind";
    result<contents> found;
    std::string received;
    read({hello.substr(0, 3), hello.substr(3, 40), hello.substr(43)}, false, found, received);
    ASSERT_TRUE(found);
    EXPECT_EQ(*found, (contents{"a.example", {"h2"}}));
    EXPECT_EQ(received, hello);
}

TEST_P(tls_hellos, of_other_protocols_are_empty_others_fail) {
    result<contents> found;
    std::string received;
    read({"GET / HTTP/1.1\r\n\r\n"}, false, found, received);
    ASSERT_TRUE(found);
    EXPECT_EQ(*found, contents());
    EXPECT_EQ(received, "GET / HTTP/1.1\r\n\r\n");
    read({}, true, found, received);
    EXPECT_EQ(found.error(), errc::end_of_stream);
    read({"\x16\x03\x01"}, true, found, received);
    EXPECT_EQ(found.error(), errc::end_of_stream);
    read({std::string("\x16\x03\x01\0\0", 5)}, false, found, received);
    EXPECT_EQ(found.error(), errc::malformed);
    using namespace client_hello;
    read({records_of(hello_of(std::string(max_bytes, '\0')))}, false, found, received);
    EXPECT_EQ(found.error(), errc::limit_reached);
    if (!simulated()) return;  // the simulator's clock passes at once
    read({"\x16"}, false, found, received);
    EXPECT_EQ(found.error(), errc::timed_out);
}

}  // namespace
}  // namespace eddy::proxy
