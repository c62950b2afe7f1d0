// Chaos test: hundreds of connections whose coroutines read, write, wait, cancel and close at
// random, on loops with hardly any receive buffers.
//
// Every byte encodes its connection, direction and position, so lost, doubled, swapped and foreign
// bytes are detected. A reader that sees a stream's end must have received all that was written
// without an error. In the end nothing may be left: no descriptor, no lease, no task.
//
// EDDY_SEED=<number> EDDY_CHAOS_ROUNDS=1 repeats the round that failed; many rounds search.
#include <eddy/io/event.hpp>
#include <eddy/io/loop_group.hpp>

#include "io/testing.hpp"

#include <fcntl.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <deque>
#include <latch>
#include <mutex>
#include <string>
#include <thread>

namespace eddy::testing {
namespace {

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define EDDY_SLOW_BUILD 1
#endif
#endif
#if defined(EDDY_SLOW_BUILD)
constexpr std::uint64_t usual_rounds = 8;
// The sanitizers open pipes of their own to check that memory can be read.
constexpr bool may_starve_descriptors = false;
#else
constexpr std::uint64_t usual_rounds = 30;
constexpr bool may_starve_descriptors = true;
#endif

std::uint64_t rounds() {
    const char* given = std::getenv("EDDY_CHAOS_ROUNDS");
    return given ? std::strtoull(given, nullptr, 10) : usual_rounds;
}

/// Aborts with the seed when a round does not end: a lost wake-up would else be a silent hang.
class watchdog {
public:
    watchdog(io_backend_kind kind, std::uint64_t seed)
        : thread_([this, kind, seed] {
              std::unique_lock lock(mutex_);
              // In ticks, so that a process that was stopped meanwhile is not taken for one that
              // hangs.
              for (int tick = 0; tick < 120; ++tick)
                  if (ended_.wait_for(lock, 1s, [this] { return over_; })) return;
              std::fprintf(stderr, "chaos on %s hangs: EDDY_SEED=%llu EDDY_CHAOS_ROUNDS=1\n",
                           std::string(to_string(kind)).c_str(),
                           static_cast<unsigned long long>(seed));
              std::abort();
          }) {}
    ~watchdog() {
        {
            const std::lock_guard lock(mutex_);
            over_ = true;
        }
        ended_.notify_one();
        thread_.join();
    }
    watchdog(const watchdog&) = delete;
    watchdog& operator=(const watchdog&) = delete;

private:
    std::mutex mutex_;
    std::condition_variable ended_;
    bool over_ = false;
    std::thread thread_;
};

// ---- what the two ends of a connection know of each other

struct direction {
    std::atomic<std::uint64_t> attempted{0};  // passed to a write
    std::atomic<std::uint64_t> written{0};    // by writes that went well
    std::atomic<bool> finished{false};        // all went well, and the end was announced
};

struct conversation {
    direction up;    // from client to server
    direction down;  // the other way
    bool claimed = false;
};

/// All conversations of a round, whichever loop their ends live on.
class registry {
public:
    std::uint64_t open() {
        const std::lock_guard lock(mutex_);
        all_.emplace_back();
        return all_.size() - 1;
    }
    conversation& at(std::uint64_t number) {
        const std::lock_guard lock(mutex_);
        return all_[number];
    }
    /// The conversation that a server was greeted with; null for one that cannot be.
    conversation* claim(std::uint64_t number) {
        const std::lock_guard lock(mutex_);
        if (number >= all_.size() || std::exchange(all_[number].claimed, true)) return nullptr;
        return &all_[number];
    }

private:
    std::mutex mutex_;
    std::deque<conversation> all_;
};

constexpr std::size_t greeting_size = sizeof(std::uint64_t);

/// The bytes of one direction. A client's begin with the conversation's number.
class content {
public:
    content(std::uint64_t number, bool up) noexcept
        : number_(number),
          key_(static_cast<std::uint32_t>(((number << 1 | up) * 0x9e3779b97f4a7c15u) >> 32)),
          greets_(up) {}

    void fill(std::uint64_t position, mutable_bytes bytes) const noexcept {
        for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = at(position + i);
        for (std::size_t i = 0; greets_ && position + i < greeting_size && i < bytes.size(); ++i)
            bytes[i] = static_cast<std::byte>(number_ >> (8 * (position + i)));
    }
    bool matches(std::uint64_t position, const_bytes bytes) const {
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < bytes.size(); ++i) wrong += bytes[i] != at(position + i);
        return wrong == 0;
    }

private:
    std::byte at(std::uint64_t position) const noexcept {
        return static_cast<std::byte>(
            ((static_cast<std::uint32_t>(position) ^ key_) * 0x9e3779b1u) >> 24);
    }

    std::uint64_t number_;
    std::uint32_t key_;
    bool greets_;
};

struct held_lease {
    lease buffer;
    std::vector<std::byte> copy;
    bool intact() const { return std::ranges::equal(buffer.bytes(), copy); }
};

/// State shared by all ends of one loop.
struct world {
    registry& talks;
    std::uint64_t seed;
    std::size_t loops;
    std::size_t own_index;

    std::deque<held_lease> kept;  // leases that outlive their stream
    std::uint64_t received = 0;
    std::uint64_t ends_seen = 0;
    std::uint64_t interrupted = 0;

    static constexpr std::size_t most_kept = 6;

    world(registry& shared, std::uint64_t own_seed, std::size_t loop_count, std::size_t index)
        : talks(shared), seed(own_seed), loops(loop_count), own_index(index) {}

    void keep(held_lease held) {
        kept.push_back(std::move(held));
        if (kept.size() > most_kept) drop_oldest();
    }
    void drop_oldest() {
        EXPECT_TRUE(kept.front().intact()) << "a lent buffer changed";
        kept.pop_front();
    }
    void drop_kept() {
        while (!kept.empty()) drop_oldest();
    }
};

// ---- random choices

std::size_t random_size(random_generator& dice) {
    const double kind = dice.unit();
    const std::uint64_t most = kind < 0.5    ? 100
                               : kind < 0.8  ? 5'000
                               : kind < 0.98 ? 65'536
                                             : 1 << 20;
    return 1 + dice.below(most);
}

duration random_time(random_generator& dice, duration most) {
    // Short times are as likely as long ones: most races are short.
    const double part = dice.unit();
    return duration(
        static_cast<duration::rep>(part * part * part * static_cast<double>(most.count())));
}

bool is_one_of(std::error_code error, std::initializer_list<std::error_code> expected) {
    return std::ranges::find(expected, error) != expected.end();
}

bool may_end_bytes(std::error_code error) {
    return is_one_of(error, {errc::cancelled, errc::timed_out, errc::closed, errno_code(ECONNRESET),
                             errno_code(EPIPE)});
}

task<> pause(random_generator& dice) {
    switch (dice.below(4)) {
        case 0: co_await loop::current().yield(); break;
        case 1: {
            const auto nap = [](duration time) -> task<result<>> {
                co_return co_await loop::current().sleep_for(time);
            };
            const duration limit = random_time(dice, 2ms);
            static_cast<void>(co_await with_timeout(limit, nap(random_time(dice, 3ms))));
            break;
        }
        default: static_cast<void>(co_await loop::current().sleep_for(random_time(dice, 2ms)));
    }
}

// ---- one end of a connection

struct side {
    world& all;
    stream socket;
    random_generator dice;
    bool is_client;
    std::uint64_t number = 0;
    conversation* talk = nullptr;
    event greeted;
    scope* children = nullptr;
    std::uint64_t received = 0;
    std::array<std::byte, greeting_size> greeting{};

    side(world& where, stream connected, std::uint64_t seed, bool client)
        : all(where), socket(std::move(connected)), dice(seed), is_client(client) {}

    direction& out() { return is_client ? talk->up : talk->down; }
    direction& in() { return is_client ? talk->down : talk->up; }

    void check(const_bytes bytes) {
        all.received += bytes.size();
        if (!is_client) bytes = take_greeting(bytes);
        if (bytes.empty() || !talk) return;
        EXPECT_TRUE(content(number, !is_client).matches(received, bytes))
            << "wrong bytes at " << received << " of conversation " << number;
        received += bytes.size();
        EXPECT_LE(received, in().attempted.load()) << "more than was ever written";
    }

    const_bytes take_greeting(const_bytes bytes) {
        while (!bytes.empty() && received < greeting_size) {
            greeting[received++] = bytes[0];
            bytes = bytes.subspan(1);
            if (received < greeting_size) continue;
            for (std::size_t i = 0; i < greeting_size; ++i)
                number |= std::to_integer<std::uint64_t>(greeting[i]) << (8 * i);
            talk = all.talks.claim(number);
            EXPECT_TRUE(talk) << "nobody sent the greeting " << number;
            if (!talk) received = 0;
            greeted.set();
        }
        return bytes;
    }

    void check_end() {
        ++all.ends_seen;
        if (!talk) return;
        EXPECT_GE(received, in().written.load()) << "the end came before the bytes";
        if (in().finished.load()) EXPECT_EQ(received, in().attempted.load());
    }
};

task<result<lease>> read_lease(stream& from) { co_return co_await from.read(); }
task<result<std::size_t>> read_into(stream& from, mutable_bytes room) {
    co_return co_await from.read_some(room);
}
task<result<>> write_bytes(stream& to, const_bytes bytes) {
    co_return co_await to.write_all(bytes);
}

/// Reads until the stream ends, or something else makes an end of it.
task<> read_all(side& me) {
    std::deque<held_lease> held;
    std::error_code error;
    std::vector<std::byte> room;
    const bool hasty = me.dice.chance(0.3);
    while (!error) {
        const bool limited = me.dice.chance(hasty ? 0.7 : 0.1);
        const duration limit = random_time(me.dice, 1ms);
        if (me.dice.chance(0.6)) {
            result<lease> got = fail(errc::cancelled);
            if (limited)
                got = co_await with_timeout(limit, read_lease(me.socket));
            else
                got = co_await me.socket.read();
            if (got) {
                EXPECT_GT(got->size(), 0u);
                me.check(got->bytes());
                if (me.dice.chance(0.3)) {
                    const const_bytes bytes = got->bytes();
                    held.push_back({std::move(*got), std::vector(bytes.begin(), bytes.end())});
                }
            }
            error = error_of(got);
        } else {
            room.resize(1 + me.dice.below(me.dice.chance(0.2) ? 9 : 9000));
            result<std::size_t> got = fail(errc::cancelled);
            if (limited)
                got = co_await with_timeout(limit, read_into(me.socket, room));
            else
                got = co_await me.socket.read_some(room);
            if (got) me.check(const_bytes(room).first(*got));
            error = error_of(got);
        }
        if (limited && error == errc::timed_out) {
            ++me.all.interrupted;
            error = {};
        }
        if (me.dice.chance(0.1)) co_await pause(me.dice);
        if (me.dice.chance(0.003)) me.socket.close();
        while (held.size() > me.dice.below(4)) {
            EXPECT_TRUE(held.front().intact()) << "a lent buffer changed";
            if (me.dice.chance(0.05)) me.all.keep(std::move(held.front()));
            held.pop_front();
        }
        if (me.dice.chance(0.002)) co_return;
    }
    if (error == errc::end_of_stream)
        me.check_end();
    else
        EXPECT_TRUE(may_end_bytes(error)) << "a read ended with: " << error.message();
    if (me.dice.chance(0.3)) me.socket.close();
    for (; !held.empty(); held.pop_front()) EXPECT_TRUE(held.front().intact());
}

/// Writes pieces of a random cut, some of them empty.
task<result<>> write_pieces(side& me, const_bytes bytes) {
    std::vector<const_bytes> pieces;
    while (!bytes.empty()) {
        const std::size_t size = std::min(
            bytes.size(), me.dice.below(3) == 0 ? std::size_t{0} : 1 + me.dice.below(bytes.size()));
        pieces.push_back(bytes.first(size));
        bytes = bytes.subspan(size);
    }
    const std::span<const const_bytes> all(pieces);
    co_return co_await me.socket.write_all(all);
}

task<result<>> write_one(side& me, const_bytes bytes) {
    switch (me.dice.below(5)) {
        case 0: co_return co_await write_pieces(me, bytes);
        case 1: {
            for (int tries = 0; tries < 4 && !bytes.empty(); ++tries) {
                const auto taken = me.socket.try_write(bytes);
                if (!taken) co_return fail(taken.error());
                EXPECT_LE(*taken, bytes.size());
                bytes = bytes.subspan(*taken);
                if (me.dice.chance(0.5)) co_await pause(me.dice);
            }
            co_return co_await me.socket.write_all(bytes);
        }
        case 2: {
            const duration limit = random_time(me.dice, 20ms);
            co_return co_await with_timeout(limit, write_bytes(me.socket, bytes));
        }
        default: co_return co_await me.socket.write_all(bytes);
    }
}

task<> write_some(side& me) {
    if (!me.is_client && !co_await me.greeted.wait()) co_return;
    if (!me.talk) co_return;
    direction& out = me.out();
    const content bytes(me.number, me.is_client);
    const std::uint64_t count = me.dice.below(12);
    std::uint64_t position = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
        std::vector<std::byte> part(random_size(me.dice) + greeting_size);
        bytes.fill(position, part);
        position += part.size();
        out.attempted += part.size();
        const result<> wrote = co_await write_one(me, part);
        if (!wrote) {
            EXPECT_TRUE(may_end_bytes(wrote.error()))
                << "a write ended with: " << wrote.error().message();
            me.all.interrupted += wrote.error() == errc::timed_out;
            if (me.dice.chance(0.5)) me.socket.close();
            co_return;
        }
        out.written += part.size();
        if (me.dice.chance(0.3)) co_await pause(me.dice);
    }
    if (me.dice.chance(0.7)) {
        // Before the call: the peer may observe the end on another thread before it returns.
        out.finished = true;
        if (!me.socket.shutdown_write()) out.finished = false;
    } else if (me.dice.chance(0.3)) {
        me.socket.close();
    }
}

/// A second user, which acts on the stream while it is in use.
task<> meddle(side& me) {
    if (!co_await loop::current().sleep_for(random_time(me.dice, 20ms))) co_return;
    switch (me.dice.below(5)) {
        case 0: me.socket.close(); break;
        case 1: static_cast<void>(me.socket.shutdown_write()); break;
        case 2: me.children->cancel(); break;
        case 3: {
            stream moved = std::move(me.socket);
            me.socket = std::move(moved);
            break;
        }
        default: me.all.drop_kept();
    }
}

task<> converse(side& me) {
    scope children(co_await current_source());
    me.children = &children;
    children.spawn(read_all(me));
    children.spawn(write_some(me));
    if (me.dice.chance(0.4)) children.spawn(meddle(me));
    co_await children.join();
}

/// A conversation without an end is cut off.
task<> live(side& me) {
    deadline_source end(co_await current_source(),
                        loop::current().now() + 5ms + random_time(me.dice, 200ms));
    co_await converse(me).under(end.source());
}

// ---- listeners, servers, clients

/// A listener that is closed now and then, and the address where it is reached at present.
struct open_listener {
    listener accepting;
    endpoint address;
};

/// Where clients of all loops find the listeners of all loops.
class address_book {
public:
    explicit address_book(std::size_t loops) : listeners_(loops) {}
    void set(std::size_t index, const std::vector<open_listener>& listeners) {
        const std::lock_guard lock(mutex_);
        listeners_[index].clear();
        for (const open_listener& each : listeners) listeners_[index].push_back(each.address);
    }
    endpoint any_of(std::size_t index, random_generator& dice) {
        const std::lock_guard lock(mutex_);
        const auto& there = listeners_[index];
        return there.empty() ? endpoint() : there[dice.below(there.size())];
    }

private:
    std::mutex mutex_;
    std::vector<std::vector<endpoint>> listeners_;
};

task<> serve(world& all, stream peer, std::uint64_t seed) {
    side me(all, std::move(peer), seed, false);
    co_await live(me);
}

task<result<stream>> accept_one(listener& from) { co_return co_await from.accept(); }
task<result<stream>> connect_one(endpoint to) { co_return co_await loop::current().connect(to); }

result<> reopen(open_listener& at, random_generator& dice) {
    listen_options options;
    if (dice.chance(0.2)) options.backlog = static_cast<int>(dice.below(3));
    endpoint where = must(endpoint::ip(dice.chance(0.3) ? "::1" : "127.0.0.1", 0));
    if (dice.chance(0.3))
        where = must(endpoint::unix_path("@eddy-chaos-" + std::to_string(getpid()) + "-" +
                                         std::to_string(dice())));
    auto opened = loop::current().listen(where, options);
    if (!opened) return fail(opened.error());
    at.accepting = std::move(*opened);
    at.address = at.accepting.local();
    return {};
}

task<> accept_all(world& all, std::vector<open_listener>& listeners, open_listener& at,
                  address_book& book, scope& servers, std::uint64_t seed) {
    random_generator dice(seed);
    for (;;) {
        if (!at.accepting) {
            // When descriptors are short, opening a new one has to wait.
            if (const auto opened = reopen(at, dice); !opened) {
                EXPECT_EQ(opened.error(), errno_code(EMFILE)) << opened.error().message();
                if (!co_await loop::current().sleep_for(1ms)) co_return;
                continue;
            }
            book.set(all.own_index, listeners);
        }
        result<stream> peer = fail(errc::cancelled);
        const bool limited = dice.chance(0.3);
        const duration limit = random_time(dice, 2ms);
        if (limited)
            peer = co_await with_timeout(limit, accept_one(at.accepting));
        else
            peer = co_await at.accepting.accept();
        if (peer) {
            if (!dice.chance(0.02)) servers.spawn(serve(all, std::move(*peer), dice()));
        } else if (peer.error() == errno_code(EMFILE)) {
            if (!co_await loop::current().sleep_for(1ms)) co_return;
        } else if (peer.error() == errc::cancelled) {
            if (at.accepting) co_return;  // it was us, not the listener
        } else {
            EXPECT_EQ(peer.error(), errc::timed_out);
        }
        if ((co_await current_source())->requested()) co_return;
        if (dice.chance(0.05)) co_await pause(dice);
        if (dice.chance(0.01)) at.accepting.close();
    }
}

task<> close_listeners(std::vector<open_listener>& listeners, std::uint64_t seed) {
    random_generator dice(seed);
    while (co_await loop::current().sleep_for(1ms + random_time(dice, 20ms)))
        listeners[dice.below(listeners.size())].accepting.close();
}

/// Leaves the process no free descriptor, for a moment now and then.
task<> starve_descriptors(std::uint64_t seed) {
    random_generator dice(seed);
    rlimit usual;
    getrlimit(RLIMIT_NOFILE, &usual);
    while (co_await loop::current().sleep_for(random_time(dice, 20ms))) {
        const unique_fd lowest(open("/dev/null", O_RDONLY | O_CLOEXEC));
        if (!lowest) continue;
        rlimit none = usual;
        none.rlim_cur = static_cast<rlim_t>(lowest.get());
        setrlimit(RLIMIT_NOFILE, &none);
        const auto slept = co_await loop::current().sleep_for(random_time(dice, 3ms));
        setrlimit(RLIMIT_NOFILE, &usual);
        if (!slept) co_return;
    }
}

task<> call(world& all, address_book& book, std::uint64_t seed) {
    random_generator dice(seed);
    if (!co_await loop::current().sleep_for(random_time(dice, 100ms))) co_return;
    const bool simulated = loop::current().kind() == io_backend_kind::sim;
    const std::size_t where = simulated ? all.own_index : dice.below(all.loops);
    const endpoint to = book.any_of(where, dice);
    if (to.family() == AF_UNSPEC) co_return;
    const duration limit = dice.chance(0.3) ? random_time(dice, 1ms) : 100ms;
    result<stream> made = co_await with_timeout(limit, connect_one(to));
    if (!made) {
        EXPECT_TRUE(is_one_of(made.error(),
                              {errc::timed_out, errc::cancelled, errno_code(ECONNREFUSED),
                               errno_code(ECONNRESET), errno_code(EAGAIN), errno_code(EMFILE)}))
            << "a connect ended with: " << made.error().message();
        all.interrupted += made.error() == errc::timed_out;
        co_return;
    }
    side me(all, std::move(*made), dice(), true);
    me.number = all.talks.open();
    me.talk = &all.talks.at(me.number);
    co_await live(me);
}

/// One loop's part of a round.
task<> run_world(world& all, address_book& book, std::size_t clients) {
    random_generator dice(all.seed);
    std::vector<open_listener> listeners(1 + dice.below(3));
    for (open_listener& each : listeners) must(reopen(each, dice));
    book.set(all.own_index, listeners);
    const bool simulated = loop::current().kind() == io_backend_kind::sim;
    const bool starving =
        may_starve_descriptors && !simulated && all.loops == 1 && dice.chance(0.3);
    const bool patient = dice.chance(0.5);

    scope servers(co_await current_source());
    {
        scope helpers(co_await current_source());
        for (open_listener& each : listeners)
            helpers.spawn(accept_all(all, listeners, each, book, servers, dice()));
        if (dice.chance(0.7)) helpers.spawn(close_listeners(listeners, dice()));
        if (starving) helpers.spawn(starve_descriptors(dice()));
        {
            scope callers(co_await current_source());
            for (std::size_t i = 0; i < clients; ++i) {
                callers.spawn(call(all, book, dice()));
                if (dice.chance(0.05)) co_await pause(dice);
            }
            co_await callers.join();
        }
        helpers.cancel();
        co_await helpers.join();
    }
    listeners.clear();
    if (!patient) servers.cancel();
    co_await servers.join();
    EXPECT_EQ(servers.children(), 0u);
    all.drop_kept();
}

loop_options random_options(io_backend_kind kind, std::uint64_t seed) {
    random_generator dice(seed ^ 0x6f7074696f6e73);
    loop_options options;
    options.kind = kind;
    options.buffer_count = 1u << dice.below(4);
    if (dice.chance(0.2)) options.buffer_count = 256;
    options.buffer_size = static_cast<std::uint32_t>(256 + dice.below(4096 - 256 + 1));
    if (dice.chance(0.2)) options.spin = 20us;
    if (dice.chance(0.3)) options.zero_copy_threshold = 1024u << dice.below(6);
    options.sim.seed = seed;
    if (dice.chance(0.8)) {
        options.sim.short_read = 0.3 * dice.unit();
        options.sim.reset = 0.002 * dice.unit();
        options.sim.no_buffers = 0.2 * dice.unit();
        options.sim.max_delay = 2ms * dice.unit() > 1ms ? 2ms : 100us;
        options.sim.socket_buffer = 1 + dice.below(65'536);
    }
    options.sim.shuffle = dice.chance(0.5);
    return with_environment(options);
}

std::size_t open_descriptors() {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

class chaos_io : public ::testing::TestWithParam<io_backend_kind> {};
INSTANTIATE_TEST_SUITE_P(io, chaos_io,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll,
                                           io_backend_kind::sim),
                         io_backend_name);

TEST_P(chaos_io, loses_mixes_and_leaves_nothing) {
    std::uint64_t received = 0;
    std::uint64_t ends_seen = 0;
    std::uint64_t interrupted = 0;
    for (std::uint64_t round = 0; round < rounds() && !HasFailure(); ++round) {
        const std::uint64_t seed = seed_of_this_run() + round;
        SCOPED_TRACE("EDDY_SEED=" + std::to_string(seed) + " EDDY_CHAOS_ROUNDS=1");
        const watchdog guard(GetParam(), seed);
        const std::size_t descriptors = open_descriptors();
        registry talks;
        address_book book(1);
        world all(talks, seed, 1, 0);
        {
            auto made = loop::create(random_options(GetParam(), seed));
            if (!made && GetParam() == io_backend_kind::uring)
                GTEST_SKIP() << "io_uring is refused here: " << made.error().message();
            const std::unique_ptr<loop> here = must(std::move(made));
            here->run(run_world(all, book, 200));
        }
        EXPECT_EQ(open_descriptors(), descriptors);
        received += all.received;
        ends_seen += all.ends_seen;
        interrupted += all.interrupted;
    }
    // The test does what it is for.
    EXPECT_GT(received, 0u);
    EXPECT_GT(ends_seen, 0u);
    EXPECT_GT(interrupted, 0u);
    RecordProperty("bytes_received", std::to_string(received));
    RecordProperty("ends_seen", std::to_string(ends_seen));
    RecordProperty("interrupted", std::to_string(interrupted));
}

// ---- several loops

/// Work that hops from loop to loop until its hops are used up.
task<> hop(loop_group& group, std::atomic<int>& landed, int left, std::uint64_t seed) {
    random_generator dice(seed);
    if (dice.chance(0.3)) co_await pause(dice);
    ++landed;
    if (left == 0) co_return;
    must(group.post(dice.below(group.size()), hop(group, landed, left - 1, dice())));
}

task<> run_member(world& all, address_book& book, loop_group& group, std::atomic<int>& landed,
                  std::latch& done, int hops) {
    random_generator dice(all.seed);
    for (int i = 0; i < 20; ++i)
        must(group.post(dice.below(group.size()), hop(group, landed, hops, dice())));
    co_await run_world(all, book, 60);
    done.count_down();
}

TEST_P(chaos_io, loops_that_talk_to_each_other_lose_nothing_either) {
    constexpr std::size_t loops = 3;
    constexpr int hops = 30;
    const std::uint64_t count = std::max<std::uint64_t>(rounds() / 5, 1);
    for (std::uint64_t round = 0; round < count && !HasFailure(); ++round) {
        const std::uint64_t seed = seed_of_this_run() + round;
        SCOPED_TRACE("EDDY_SEED=" + std::to_string(seed) + " EDDY_CHAOS_ROUNDS=1");
        const watchdog guard(GetParam(), seed);
        const std::size_t descriptors = open_descriptors();
        registry talks;
        address_book book(loops);
        std::deque<world> worlds;
        for (std::size_t i = 0; i < loops; ++i)
            worlds.emplace_back(talks, seed + i * 1000, loops, i);
        std::atomic<int> landed = 0;
        {
            loop_group_options options;
            options.threads = loops;
            options.loop = random_options(GetParam(), seed);
            auto group = loop_group::start(options);
            if (!group && GetParam() == io_backend_kind::uring)
                GTEST_SKIP() << "io_uring is refused here: " << group.error().message();
            std::latch done(loops);
            for (std::size_t i = 0; i < loops; ++i)
                must((*group)->post(i, run_member(worlds[i], book, **group, landed, done, hops)));
            done.wait();
            while (landed < static_cast<int>(loops) * 20 * (hops + 1)) std::this_thread::yield();
            (*group)->stop();
        }
        EXPECT_EQ(open_descriptors(), descriptors);
    }
}

}  // namespace
}  // namespace eddy::testing
