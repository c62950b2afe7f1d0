// Scheme handoff://: parameters, and servers on one loop and several that serve clients that are
// handed over.
#include <eddy/transport/transport.hpp>

#include "handoff/testing.hpp"
#include "transport/serving/acceptor.hpp"
#include "transport/serving/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace eddy::transport {
namespace {

using namespace serving::testing;
using eddy::testing::error_of;
using ::testing::HasSubstr;
using unix_socket::socket_type;

class handoff_scheme : public handoff::testing::on_kernel_backend {
protected:
    std::string uri(std::string_view query = {}) const {
        return "handoff://" + path() + std::string(query);
    }
};
EDDY_HANDOFFS_ON_KERNEL_BACKENDS(handoff_scheme);

TEST_P(handoff_scheme, listens_as_its_parameters_say) {
    run([&]() -> task<void> {
        const auto mode = [this] {
            struct stat file{};
            EXPECT_EQ(::stat(path().c_str(), &file), 0);
            return file.st_mode & 0777;
        };
        {
            listener from = must(transport::listen(uri()));
            EXPECT_EQ(mode(), 0660U);
            const stream client = hand_over_client();
            must(co_await from.accept());
            EXPECT_THROW(sender(socket_type::stream), std::runtime_error);
        }
        {
            const std::string users = std::to_string(::geteuid());
            listener from =
                must(transport::listen(uri("?type=stream&mode=600&allow=4000000000," + users)));
            EXPECT_EQ(mode(), 0600U);
            const stream client = hand_over_client(socket_type::stream);
            must(co_await from.accept());
            EXPECT_THROW(sender(socket_type::seqpacket), std::runtime_error);
        }
        listen_options open_to_all;
        open_to_all.unix_mode = 0666;
        {
            const listener from = must(transport::listen(uri(), open_to_all));
            EXPECT_EQ(mode(), 0666U);
        }
        address bad = must(parse(uri()));
        bad.handoff.mode = "9";
        EXPECT_EQ(error_of(transport::listen(bad)), errc::bad_address);
        bad.handoff = {.allow = "root"};
        EXPECT_EQ(error_of(transport::listen(bad)), errc::bad_address);
        address abstract = must(parse("handoff://@eddy-handoff-scheme-test"));
        EXPECT_EQ(error_of(transport::listen(abstract, open_to_all)), errno_code(EINVAL));
        abstract.handoff.mode = "0600";
        EXPECT_EQ(error_of(transport::listen(abstract)), errc::bad_address);
    });
}

TEST_P(handoff_scheme, listens_and_does_not_connect) {
    run([&]() -> task<void> {
        const listener from = must(transport::listen(uri()));
        EXPECT_EQ(error_of(co_await transport::connect(uri())), errc::unsupported);
        EXPECT_THAT(explain(uri(), errc::unsupported), HasSubstr("an address to serve on"));
        EXPECT_EQ(error_of(transport::listen(uri())), std::errc::address_in_use);
    });
}

/// Worker that sends its number to each client.
class greeter final : public serving::loop_worker {
public:
    explicit greeter(const serving::worker_place& place)
        : loop_worker(place), index_(place.index) {}
    void take(stream accepted, serving::connection_slot slot) override {
        tasks_.spawn(greet(std::make_unique<client>(clients_, std::move(accepted), tasks_.source(),
                                                    std::move(slot))));
    }

private:
    class client final : public serving::connection {
    public:
        using connection::connection;
    };
    task<void> greet(std::unique_ptr<client> to) {
        const std::string hello = std::to_string(index_) + "\n";
        if (!co_await to->socket.write_all(hello)) co_return;
        static_cast<void>(co_await to->socket.read());  // until it leaves
    }

    std::size_t index_;
};

TEST_P(handoff_scheme, serves_clients_on_all_loops_and_notes_failed_handoffs) {
    run([&]() -> task<void> {
        for (const std::size_t threads : {1U, 3U}) {
            recorder events;
            serving::loop_pool pool(events);
            serving::acceptor accepting(pool);
            auto parts = must(listen_in_parts(must(parse(uri()))));
            serving::served_listener listening{std::move(parts.below), std::move(parts.finish),
                                               std::move(parts.renew)};
            must(pool.start_threads(threads, "handoffs"));
            must(co_await pool.make_workers([](const serving::worker_place& place) {
                return std::make_unique<greeter>(place);
            }));
            accepting.open(listening, {}, false);

            std::vector<talker> clients;
            std::string loops;
            for (int i = 0; i < 6; ++i) {
                clients.emplace_back(hand_over_client());
                loops += co_await clients.back().line();
            }
            std::sort(loops.begin(), loops.end());
            EXPECT_EQ(loops, threads == 1 ? "000000" : "112233");

            constexpr std::uint64_t failures = 5;
            for (std::uint64_t i = 0; i < failures; ++i) sender().reset();
            co_await serving::testing::until(
                [&] { return pool.here()->counted().errors.value() == failures; });
            clients.clear();
            co_await accepting.close();
            listening.socket.close();
            co_await pool.drain({});
            co_await pool.end([](serving::loop_worker&) {});
            EXPECT_THAT(events.lines,
                        ::testing::Contains("a handoff brought no client: incomplete_message"));
            EXPECT_THAT(
                events.lines,
                ::testing::Contains("4 more handoffs brought no client since the last report"));
        }
    });
}

}  // namespace
}  // namespace eddy::transport
