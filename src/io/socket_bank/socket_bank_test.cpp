// Socket banks on every io-backend: order, backpressure, hang-ups, slots, and random use.
#include "io/socket_bank/socket_bank.hpp"

#include "base/test_rounds.hpp"
#include "io/socket_bank/socket_bank_testing.hpp"

#include <cerrno>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace eddy::testing {
namespace {

EDDY_ON_EVERY_IO_BACKEND(socket_bank_io);

TEST_P(socket_bank_io, carries_bytes_in_order) {
    run([this]() -> task<> {
        recorder seen;
        checked_bank bank(4, seen);
        connection ends = co_await connect();
        const std::uint32_t slot = must(bank.add(std::move(ends.server)));
        EXPECT_EQ(slot, 0u);
        EXPECT_EQ(bank.size(), 1u);
        pattern sent(1);
        pattern expected(1);
        for (std::size_t i = 1; i <= 100; ++i) {
            const auto bytes = sent.next(1 + i * i);
            bank.write(slot, bytes);
            bank.flush();
            co_await seen.wait_writes(i);
            co_await expect_pattern(ends.client, expected, bytes.size());
        }
        EXPECT_EQ(seen.written[slot], std::vector<int>(100, 0));
        bank.close(slot);
        bank.flush();
        co_await seen.wait_closed(1);
        EXPECT_EQ(bank.size(), 0u);
        EXPECT_TRUE(seen.hangups.empty());
        const rest end = co_await read_rest(ends.client);
        EXPECT_EQ(end.size, 0u);
        EXPECT_EQ(end.end, errc::end_of_stream);
    });
}

TEST_P(socket_bank_io, needs_no_flush) {
    run([this]() -> task<> {
        recorder seen;
        checked_bank bank(4, seen);
        connection ends = co_await connect();
        const std::uint32_t slot = must(bank.add(std::move(ends.server)));
        bank.write(slot, "hello");
        co_await expect_text(ends.client, "hello");
        co_await seen.wait_writes(1);
        bank.close(slot);
        co_await seen.wait_closed(1);
        EXPECT_EQ((co_await read_rest(ends.client)).end, errc::end_of_stream);
    });
}

TEST_P(socket_bank_io, a_write_waits_for_room_and_holds_up_no_other) {
    run([this]() -> task<> {
        recorder seen;
        checked_bank bank(4, seen);
        connection slow = co_await connect();
        connection fast = co_await connect();
        const std::uint32_t slow_slot = must(bank.add(std::move(slow.server)));
        const std::uint32_t fast_slot = must(bank.add(std::move(fast.server)));
        pattern sent(1);
        pattern expected(1);
        const auto bytes = sent.next(more_than_fits);
        bank.write(slow_slot, bytes);
        for (int i = 0; i < 10; ++i) {
            bank.write(fast_slot, "tick");
            bank.flush();
            co_await expect_text(fast.client, "tick");
            co_await seen.wait_writes(static_cast<std::size_t>(i) + 1);
        }
        EXPECT_TRUE(seen.written[slow_slot].empty());
        for (std::size_t left = bytes.size(); left > 0; left -= bytes.size() / 64)
            co_await expect_pattern(slow.client, expected, bytes.size() / 64);
        co_await seen.wait([&] { return !seen.written[slow_slot].empty(); });
        EXPECT_EQ(seen.written[slow_slot], std::vector<int>{0});
        EXPECT_TRUE(seen.hangups.empty());
    });
}

TEST_P(socket_bank_io, sees_a_peer_that_closes) {
    run([this]() -> task<> {
        recorder seen;
        checked_bank bank(4, seen);
        connection gone = co_await connect();
        connection stays = co_await connect();
        const std::uint32_t slot = must(bank.add(std::move(gone.server)));
        must(bank.add(std::move(stays.server)));
        co_await here().yield();
        EXPECT_TRUE(seen.hangups.empty());
        gone.client.close();
        co_await seen.wait_hangups(1);
        EXPECT_EQ(seen.hangups, std::vector<std::uint32_t>{slot});
        // The first write is answered by a reset, and one of the next fails.
        for (std::size_t i = 1; i < 1000 && (i == 1 || seen.written[slot].back() == 0); ++i) {
            bank.write(slot, "x");
            bank.flush();
            co_await seen.wait_writes(i);
            must(co_await here().sleep_for(1ms));
        }
        EXPECT_TRUE(seen.written[slot].back() == -EPIPE || seen.written[slot].back() == -ECONNRESET)
            << seen.written[slot].back();
        EXPECT_EQ(seen.hangups.size(), 1u);
        bank.close(slot);
        co_await seen.wait_closed(1);
    });
}

TEST_P(socket_bank_io, sees_a_peer_that_had_closed_before) {
    run([this]() -> task<> {
        recorder seen;
        checked_bank bank(4, seen);
        connection ends = co_await connect();
        ends.client.close();
        must(co_await here().sleep_for(1ms));
        const std::uint32_t slot = must(bank.add(std::move(ends.server)));
        co_await seen.wait_hangups(1);
        EXPECT_EQ(seen.hangups, std::vector<std::uint32_t>{slot});
    });
}

TEST_P(socket_bank_io, sees_a_peer_that_ends_its_sending_and_still_writes) {
    run([this]() -> task<> {
        recorder seen;
        checked_bank bank(4, seen);
        connection ends = co_await connect();
        const std::uint32_t slot = must(bank.add(std::move(ends.server)));
        must(co_await ends.client.write_all("unread"));
        must(ends.client.shutdown_write());
        co_await seen.wait_hangups(1);
        bank.write(slot, "last words");
        bank.flush();
        co_await seen.wait_writes(1);
        EXPECT_EQ(seen.written[slot], std::vector<int>{0});
        bank.close(slot);
        bank.flush();
        co_await seen.wait_closed(1);
        co_await expect_text(ends.client, "last words");
        EXPECT_EQ((co_await read_rest(ends.client)).end, errc::end_of_stream);
        EXPECT_EQ(seen.hangups, std::vector<std::uint32_t>{slot});
    });
}

TEST_P(socket_bank_io, a_close_ends_a_write_that_waits) {
    run([this]() -> task<> {
        recorder seen;
        checked_bank bank(4, seen);
        connection ends = co_await connect();
        const std::uint32_t slot = must(bank.add(std::move(ends.server)));
        {
            const std::vector<std::byte> bytes(more_than_fits);
            bank.write(slot, bytes);
            bank.flush();
            co_await here().yield();
            bank.close(slot);
            bank.flush();
            co_await seen.wait_closed(1);
        }
        EXPECT_EQ(seen.writes, 0u);
        const rest end = co_await read_rest(ends.client);
        EXPECT_LT(end.size, more_than_fits);
        EXPECT_TRUE(seen.hangups.empty());
    });
}

TEST_P(socket_bank_io, a_close_drops_a_write_that_has_not_begun) {
    run([this]() -> task<> {
        recorder seen;
        checked_bank bank(4, seen);
        connection ends = co_await connect();
        const std::uint32_t slot = must(bank.add(std::move(ends.server)));
        bank.write(slot, "never");
        bank.close(slot);
        bank.flush();
        co_await seen.wait_closed(1);
        EXPECT_EQ(seen.writes, 0u);
        EXPECT_EQ((co_await read_rest(ends.client)).size, 0u);
    });
}

TEST_P(socket_bank_io, a_reset_is_an_error_for_the_peer) {
    run([this]() -> task<> {
        recorder seen;
        checked_bank bank(4, seen);
        connection ends = co_await connect();
        std::uint32_t slot = must(bank.add(std::move(ends.server)));
        bank.write(slot, "a part");
        co_await expect_text(ends.client, "a part");
        co_await seen.wait_writes(1);
        bank.break_off(slot);
        bank.flush();
        co_await seen.wait_closed(1);
        EXPECT_EQ((co_await read_rest(ends.client)).end, errno_code(ECONNRESET));
        EXPECT_EQ(bank.size(), 0u);

        // In the middle of a write.
        ends = co_await connect();
        slot = must(bank.add(std::move(ends.server)));
        {
            const std::vector<std::byte> bytes(more_than_fits);
            bank.write(slot, bytes);
            bank.flush();
            co_await here().yield();
            bank.break_off(slot);
            co_await seen.wait_closed(2);
        }
        EXPECT_EQ(seen.writes, 1u);
        const rest end = co_await read_rest(ends.client);
        EXPECT_LT(end.size, more_than_fits);
        EXPECT_EQ(end.end, errno_code(ECONNRESET));

        // The slot's next socket is closed as usual.
        ends = co_await connect();
        EXPECT_EQ(must(bank.add(std::move(ends.server))), slot);
        bank.close(slot);
        co_await seen.wait_closed(3);
        EXPECT_EQ((co_await read_rest(ends.client)).end, errc::end_of_stream);
        EXPECT_TRUE(seen.hangups.empty());
    });
}

TEST_P(socket_bank_io, slots_come_back_when_they_are_closed) {
    run([this]() -> task<> {
        recorder seen;
        checked_bank bank(3, seen);
        std::vector<connection> all;
        for (std::uint32_t i = 0; i < 3; ++i) {
            all.push_back(co_await connect());
            EXPECT_EQ(must(bank.add(std::move(all.back().server))), i);
        }
        connection late = co_await connect();
        connection refused = co_await connect();
        connection again = co_await connect();
        bank.close(1);
        // Until on_closed() it counts.
        EXPECT_EQ(bank.size(), 3u);
        EXPECT_EQ(error_of(bank.add(std::move(refused.server))), errc::limit_reached);
        EXPECT_EQ((co_await read_rest(refused.client)).end, errc::end_of_stream);
        bank.flush();
        co_await seen.wait_closed(1);
        EXPECT_EQ(seen.closed, std::vector<std::uint32_t>{1});
        EXPECT_EQ(must(bank.add(std::move(late.server))), 1u);
        bank.write(1, "new");
        bank.flush();
        co_await expect_text(late.client, "new");
        co_await seen.wait_writes(1);
        bank.close(0);
        bank.close(2);
        bank.flush();
        co_await seen.wait_closed(3);
        // The last one that was closed is the first to be used again.
        const std::uint32_t last = seen.closed.back();
        EXPECT_EQ(must(bank.add(std::move(again.server))), last);
        EXPECT_EQ(bank.size(), 2u);
    });
}

TEST_P(socket_bank_io, callbacks_may_use_the_bank) {
    run([this]() -> task<> {
        recorder seen;
        checked_bank bank(1, seen);
        connection first = co_await connect();
        connection second = co_await connect();
        stream next = std::move(second.server);
        std::vector<std::string> left = {"three", "two"};
        std::string current = "one ";
        seen.after_write = [&](std::uint32_t slot, int result) {
            EXPECT_EQ(result, 0);
            if (left.empty()) return;
            current = left.back() + " ";
            left.pop_back();
            bank.write(slot, current);
            bank.flush();
        };
        seen.after_hangup = [&](std::uint32_t slot) { bank.close(slot); };
        seen.after_close = [&](std::uint32_t slot) {
            if (!next) return;
            EXPECT_EQ(must(bank.add(std::move(next))), slot);
            bank.write(slot, "second");
        };
        const std::uint32_t slot = must(bank.add(std::move(first.server)));
        bank.write(slot, current);
        bank.flush();
        co_await expect_text(first.client, "one two three ");
        co_await seen.wait_writes(3);
        first.client.close();
        co_await expect_text(second.client, "second");
        co_await seen.wait_writes(4);
        EXPECT_EQ(seen.closed, std::vector<std::uint32_t>{slot});
        second.client.close();
        co_await seen.wait_closed(2);
        EXPECT_EQ(bank.size(), 0u);
    });
}

TEST_P(socket_bank_io, an_endless_chain_of_writes_leaves_the_loop_its_turns) {
    run([this]() -> task<> {
        recorder seen;
        checked_bank bank(1, seen);
        connection ends = co_await connect();
        bool stop = false;
        seen.after_write = [&](std::uint32_t slot, int) {
            if (!stop) bank.write(slot, "x");
        };
        const std::uint32_t slot = must(bank.add(std::move(ends.server)));
        bank.write(slot, "x");
        bank.flush();
        for (int turn = 0; turn < 100; ++turn) co_await here().yield();
        stop = true;
        bank.close(slot);
        co_await seen.wait_closed(1);
        EXPECT_EQ((co_await read_rest(ends.client)).end, errc::end_of_stream);
    });
}

TEST_P(socket_bank_io, its_end_closes_all) {
    run([this]() -> task<> {
        recorder seen;
        checked_bank bank(10, seen);
        std::vector<connection> all;
        const std::vector<std::byte> bytes(more_than_fits);
        for (int i = 0; i < 4; ++i) {
            all.push_back(co_await connect());
            must(bank.add(std::move(all.back().server)));
        }
        bank.write(1, bytes);  // waits
        bank.flush();
        bank.write(2, "dropped");
        bank.close(3);
        bank.reset();
        EXPECT_EQ(seen.writes, 0u);
        for (connection& each : all) static_cast<void>(co_await read_rest(each.client));
        EXPECT_TRUE(seen.closed.empty() && seen.hangups.empty());
    });
}

TEST_P(socket_bank_io, refuses_capacities_out_of_range) {
    run([]() -> task<> {
        recorder seen;
        EXPECT_EQ(error_of(socket_bank::open(0, seen)), errno_code(EINVAL));
        EXPECT_EQ(error_of(socket_bank::open(socket_bank_options::max_capacity + 1, seen)),
                  errno_code(EINVAL));
        co_return;
    });
}

/// Connections of a bank under random use, against what was asked of it.
class random_use {
public:
    random_use(checked_bank& bank, recorder& seen, random_generator& random, scope& readers)
        : bank_(bank), random_(random), readers_(readers) {
        seen.after_write = [this](std::uint32_t slot, int result) { on_written(slot, result); };
        seen.after_hangup = [this](std::uint32_t slot) {
            EXPECT_FALSE(at(slot).closing || at(slot).hung_up);
            at(slot).hung_up = true;
        };
        seen.after_close = [this](std::uint32_t slot) {
            EXPECT_TRUE(at(slot).closing);
            used_.erase(slot);
        };
    }

    void add(connection ends) {
        const std::uint32_t slot = must(bank_.add(std::move(ends.server)));
        EXPECT_FALSE(used_.contains(slot));
        auto made = std::make_shared<one>(all_.size());
        made->client = std::move(ends.client);
        all_.push_back(made);
        used_[slot] = made;
        readers_.spawn(read(made, random_()));
    }

    void step() {
        if (used_.empty()) return;
        auto chosen =
            std::next(used_.begin(), static_cast<std::ptrdiff_t>(random_.below(used_.size())));
        one& of = *chosen->second;
        if (of.closing) return;
        const std::uint64_t what = random_.below(100);
        if (what < 80) {
            if (of.writing) return;
            of.bytes = of.sent.next(1 + random_.below(std::size_t{1} << random_.below(20)));
            of.begun += of.bytes.size();
            of.writing = true;
            bank_.write(chosen->first, of.bytes);
        } else if (what < 90) {
            of.is_cut = of.writing;
            of.closing = true;
            bank_.close(chosen->first);
        } else if (what < 95 && !of.client_closed) {
            of.client_closed = true;
            of.client.close();
        }
    }

    void close_all() {
        for (auto& [slot, of] : used_)
            if (!of->closing) {
                of->is_cut = of->writing;
                of->closing = true;
                bank_.close(slot);
            }
    }

    /// `has_resets`: connections break by themselves, too.
    void check(bool has_resets) {
        for (const auto& each : all_) {
            EXPECT_LE(each->received, each->begun);
            if (each->client_closed || (has_resets && each->end != errc::end_of_stream)) continue;
            EXPECT_GE(each->received, each->completed);
            if (!each->is_cut) EXPECT_EQ(each->received, each->begun);
            EXPECT_EQ(each->end, errc::end_of_stream);
        }
    }

    std::size_t connections() const { return all_.size(); }
    std::size_t failures() const { return failures_; }

private:
    struct one {
        explicit one(std::uint64_t number) : sent(number), expected(number) {}
        stream client;
        pattern sent;
        pattern expected;
        std::vector<std::byte> bytes;
        std::size_t begun = 0;
        std::size_t completed = 0;
        std::size_t received = 0;
        std::error_code end;
        bool writing = false;
        bool closing = false;
        bool is_cut = false;
        bool hung_up = false;
        bool client_closed = false;
    };

    one& at(std::uint32_t slot) { return *used_.at(slot); }

    void on_written(std::uint32_t slot, int result) {
        one& of = at(slot);
        EXPECT_TRUE(of.writing && !of.closing);
        of.writing = false;
        if (result == 0) {
            of.completed = of.begun;
        } else {
            of.is_cut = true;
            ++failures_;
        }
    }

    static task<void> read(std::shared_ptr<one> of, std::uint64_t seed) {
        random_generator dice(seed);
        for (;;) {
            if (dice.chance(0.2)) co_await loop::current().yield();
            auto got = co_await of->client.read();
            if (!got) {
                of->end = got.error();
                co_return;
            }
            EXPECT_TRUE(of->expected.continues_with(got->bytes()));
            of->received += got->size();
        }
    }

    checked_bank& bank_;
    random_generator& random_;
    scope& readers_;
    std::vector<std::shared_ptr<one>> all_;
    std::map<std::uint32_t, std::shared_ptr<one>> used_;
    std::size_t failures_ = 0;
};

task<void> use_at_random(std::function<task<connection>()> connect, random_generator& random,
                         bool has_resets) {
    recorder seen;
    socket_bank_options options;
    options.capacity = 12;
    options.table_size = 5;
    checked_bank bank(options, seen);
    co_await join_scope([&](scope& readers) -> task<> {
        random_use use(bank, seen, random, readers);
        const std::uint64_t steps = rounds(std::uint64_t{1500});
        for (std::uint64_t i = 0; i < steps; ++i) {
            if (bank.size() < options.capacity && random.chance(0.2)) use.add(co_await connect());
            use.step();
            if (random.chance(0.5)) bank.flush();
            if (random.chance(0.3)) co_await loop::current().yield();
        }
        use.close_all();
        co_await seen.wait([&] { return bank.size() == 0; });
        while (readers.children() > 0) must(co_await loop::current().sleep_for(1ms));
        use.check(has_resets);
        EXPECT_GT(use.connections(), options.capacity);
        if (has_resets) EXPECT_GT(use.failures(), 0u);
        seen.after_write = nullptr;
        seen.after_hangup = seen.after_close = nullptr;
    });
}

TEST_P(socket_bank_io, does_what_is_asked_in_any_order) {
    run([this]() -> task<> {
        co_await use_at_random([this] { return connect(); }, random(), false);
    });
}

TEST_P(socket_bank_io, does_what_is_asked_while_connections_break) {
    if (!simulated()) GTEST_SKIP() << "only the simulator breaks connections";
    loop_options options;
    options.sim.reset = 0.01;
    options.sim.short_read = 0.2;
    options.sim.max_delay = 1ms;
    options.sim.socket_buffer = 3000;
    make_loop(options);
    run([this]() -> task<> {
        co_await use_at_random([this] { return connect(); }, random(), true);
    });
}

TEST_P(socket_bank_io, may_be_opened_before_the_loop_runs) {
    connection ends;
    run([&]() -> task<> { ends = co_await connect(); });
    if (!ends.server) return;
    recorder seen;
    checked_bank bank(1, seen);
    const std::uint32_t slot = must(bank.add(std::move(ends.server)));
    bank.write(slot, "early");
    run([&]() -> task<> {
        co_await expect_text(ends.client, "early");
        ends.client.close();
        co_await seen.wait_hangups(1);
        bank.close(slot);
        co_await seen.wait_closed(1);
    });
}

}  // namespace
}  // namespace eddy::testing
