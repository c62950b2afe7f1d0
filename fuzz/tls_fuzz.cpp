// Fuzz target of the ends of a TLS connection, in the simulator: whatever comes in, an end neither
// crashes nor reads bytes that its peer did not write, nor takes a cut connection for a finished
// one.
//
// The first byte chooses what `choice` names, the second seeds the cuts and the actions of the
// ends, the third their number of bytes. The rest are either all bytes that the peer sends, or
// changes to a real peer's, four bytes each. OpenSSL's random numbers are always the same, so that
// a recorded peer can be played back: EDDY_FUZZ_RECORD=FILE appends a real one's bytes.
#include <eddy/tls/tls.hpp>

#include <eddy/base/assert.hpp>
#include <eddy/base/random.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/timeout.hpp>

#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace eddy;
using namespace std::chrono_literals;

enum choice : std::uint8_t {
    client_is_tested = 1,
    only_tls1_2 = 2,
    client_has_certificate = 4,
    tickets = 8,
    raw_bytes = 16,  // the rest is what the peer sends
    small_sockets = 32,
    short_reads = 64,
    peer_goes_away = 128,  // after its last raw byte, and does not wait
};

/// Certificate of this program alone, valid until the year 2120.
constexpr char certificate_text[] =
    "-----BEGIN CERTIFICATE-----\n"
    "MIIBYTCCAQegAwIBAgIBATAKBggqhkjOPQQDAjAUMRIwEAYDVQQDDAlsb2NhbGhv\n"
    "c3QwIBcNMjAwMTAxMDAwMDAwWhgPMjEyMDAxMDEwMDAwMDBaMBQxEjAQBgNVBAMM\n"
    "CWxvY2FsaG9zdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABH109Cwmp2J1DaLn\n"
    "xEIKAlYpoT0gxQIgfLoO9ydCIIfJAzKJYfruBRqCQzkynmA9OVpHOCvVB08uTbx2\n"
    "ihiEzz6jSDBGMBQGA1UdEQQNMAuCCWxvY2FsaG9zdDAPBgNVHRMBAf8EBTADAQH/\n"
    "MB0GA1UdDgQWBBQtM+pNPVTTC9X9O/gScRBN57ECHzAKBggqhkjOPQQDAgNIADBF\n"
    "AiEAl9Jx4zRzKpn6mWD0FpvXUCiUZJhKhFDqQZbc8aWsbDoCIGTgE6tAtaRYHLoL\n"
    "Mk39mUBP/kQi2kSWCiFplRW6ke15\n"
    "-----END CERTIFICATE-----\n";

constexpr char key_text[] =
    "-----BEGIN PRIVATE KEY-----\n"
    "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgJQ1x8wdTAdDbHNyc\n"
    "OZQ6dwB/R2WOZpcX2ByvpZKBceGhRANCAAR9dPQsJqdidQ2i58RCCgJWKaE9IMUC\n"
    "IHy6DvcnQiCHyQMyiWH67gUagkM5Mp5gPTlaRzgr1QdPLk28dooYhM8+\n"
    "-----END PRIVATE KEY-----\n";

tls::context client_context(std::uint8_t flags) {
    tls::client_options options;
    options.ca = certificate_text;
    if (flags & client_has_certificate) options.own = {certificate_text, key_text};
    if (flags & only_tls1_2) options.max = tls::version::tls1_2;
    auto made = tls::context::client(options);
    EDDY_ASSERT(made);
    return *made;
}

tls::context server_context(std::uint8_t flags) {
    tls::server_options options;
    options.certificates = {{certificate_text, key_text}};
    options.tickets = (flags & tickets) != 0;
    if (flags & client_has_certificate) {
        options.clients = tls::client_verification::required;
        options.client_ca = certificate_text;
    }
    auto made = tls::context::server(options);
    EDDY_ASSERT(made);
    return *made;
}

/// Text that both ends send. Its bytes encode their place.
char text_at(std::size_t place) noexcept {
    return static_cast<char>('a' + (place * 7 + place / 251) % 26);
}

struct run {
    std::uint8_t flags;
    std::size_t text_size;
    random_generator random;
};

struct end_of_talk {
    std::size_t received = 0;
    bool genuine = true;  // each byte was the peer's next one
    std::error_code how;
};

void look_at(const_bytes bytes, end_of_talk& at) {
    for (const std::byte b : bytes)
        at.genuine = at.genuine && static_cast<char>(b) == text_at(at.received++);
}

task<result<lease>> read_lease(stream& from) { co_return co_await from.read(); }

task<> read_to_end(stream& from, run& how, end_of_talk& at) {
    std::array<std::byte, 700> own{};
    while (!at.how) {
        if (how.random.chance(0.3)) {
            const mutable_bytes place(own.data(), 1 + how.random.below(own.size()));
            const auto size = co_await from.read_some(place);
            if (size)
                look_at(const_bytes(own).first(*size), at);
            else
                at.how = size.error();
        } else if (how.random.chance(0.2)) {
            const auto got = co_await with_timeout(10us, read_lease(from));
            if (got)
                look_at(got->bytes(), at);
            else if (got.error() != errc::timed_out)
                at.how = got.error();
        } else {
            const auto got = co_await from.read();
            if (got)
                look_at(got->bytes(), at);
            else
                at.how = got.error();
        }
    }
}

task<> write_all(stream& to, run& how) {
    std::string text;
    for (std::size_t i = 0; i < how.text_size; ++i) text += text_at(i);
    std::string_view left = text;
    while (!left.empty()) {
        const std::string_view piece = left.substr(0, 1 + how.random.below(20'000));
        std::size_t taken = 0;
        if (how.random.chance(0.4)) {
            const auto now = to.try_write(as_bytes(piece));
            if (!now) co_return;
            taken = *now;
        }
        const std::string_view rest = piece.substr(taken);
        if (!rest.empty() && how.random.chance(0.3)) {
            const std::size_t middle = how.random.below(rest.size() + 1);
            const std::array<const_bytes, 2> pieces{as_bytes(rest.substr(0, middle)),
                                                    as_bytes(rest.substr(middle))};
            if (!co_await to.write_all(std::span<const const_bytes>(pieces))) co_return;
        } else if (!rest.empty()) {
            if (!co_await to.write_all(rest)) co_return;
        }
        left.remove_prefix(piece.size());
    }
    static_cast<void>(to.shutdown_write());
}

/// One end: the handshake, then both directions at once until both are over.
task<> talk(stream plain, bool as_client, run& how, end_of_talk& at) {
    result<stream> made = fail(errc::closed);
    if (as_client)
        made = co_await tls::connect(std::move(plain), client_context(how.flags), "localhost");
    else
        made = co_await tls::accept(std::move(plain), server_context(how.flags));
    if (!made) {
        at.how = made.error();
        co_return;
    }
    EDDY_ASSERT(tls::info(*made).has_value());
    stream& secure = *made;
    co_await join_scope([&](scope& both) -> task<> {
        both.spawn(read_to_end(secure, how, at));
        both.spawn(write_all(secure, how));
        co_return;
    });
    // The peer's end may have come before our own was sent; closing must wait for that.
    static_cast<void>(co_await secure.read());
}

// ---- what stands between the ends

task<> write_in_cuts(stream& to, std::string_view bytes, run& how, bool& broken) {
    while (!bytes.empty() && !broken) {
        const std::size_t most = how.random.chance(0.3) ? 8 : 4'000;
        const std::string_view piece = bytes.substr(0, 1 + how.random.below(most));
        broken = !co_await to.write_all(piece);
        bytes.remove_prefix(piece.size());
        if (how.random.chance(0.2)) static_cast<void>(co_await loop::current().sleep_for(1us));
    }
}

task<> drain(stream& from) {
    while (co_await from.read()) {
    }
}

/// A change of a stream at a place of it.
struct change {
    enum kind : std::uint8_t { flip, leave_out, insert, repeat, cut, wait, kinds };
    std::size_t place;
    kind what;
    std::uint8_t much;

    bool harmless() const noexcept { return what == wait || (what == insert && much == 0); }
};

std::vector<change> changes_in(std::string_view input) {
    constexpr std::size_t most = 16;
    std::vector<change> all;
    std::size_t place = 0;
    for (; input.size() >= 4 && all.size() < most; input.remove_prefix(4)) {
        const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(input[i]); };
        place += byte(0) + 256U * byte(1);
        all.push_back({place, static_cast<change::kind>(byte(2) % change::kinds), byte(3)});
    }
    return all;
}

void record(std::string_view sent) {
    const char* const name = std::getenv("EDDY_FUZZ_RECORD");
    std::FILE* const file = name ? std::fopen(name, "ab") : nullptr;
    if (!file) return;
    std::fwrite(sent.data(), 1, sent.size(), file);
    std::fclose(file);
}

/// Passes on what comes, with the changes. `touched`: one of them has altered something.
task<> relay(stream& from, stream& to, std::vector<change> changes, run& how, bool& touched) {
    std::size_t at = 0;
    auto next = changes.begin();
    std::size_t left_out = 0;
    bool broken = false;
    while (!broken) {
        const auto received = co_await from.read();
        if (!received) break;
        std::string passed;
        for (const char c : received->text()) {
            bool keep = left_out == 0;
            if (!keep) --left_out;
            char byte = c;
            for (; next != changes.end() && next->place == at && !broken; ++next) {
                touched = touched || !next->harmless();
                switch (next->what) {
                    case change::flip:
                        byte = static_cast<char>(byte ^ (next->much ? next->much : 1));
                        break;
                    case change::leave_out:
                        keep = false;
                        left_out = next->much;
                        break;
                    case change::insert: passed.append(next->much, byte); break;
                    case change::repeat: passed += byte; break;
                    case change::cut: broken = true; break;
                    case change::wait:
                        co_await write_in_cuts(to, std::exchange(passed, {}), how, broken);
                        static_cast<void>(co_await loop::current().sleep_for(next->much * 1ms));
                        break;
                    case change::kinds: break;
                }
            }
            if (broken) break;
            if (keep) passed += byte;
            ++at;
        }
        bool failed = false;
        co_await write_in_cuts(to, passed, how, failed);
        if (failed) break;
    }
    static_cast<void>(to.shutdown_write());
    co_await drain(from);
}

task<> record_and_relay(stream& from, stream& to) {
    while (const auto received = co_await from.read()) {
        record(received->text());
        if (!co_await to.write_all(received->bytes())) break;
    }
    static_cast<void>(to.shutdown_write());
}

struct pair {
    stream a;
    stream b;
};

task<pair> connected() {
    loop& here = loop::current();
    auto accepting = here.listen(*endpoint::ip("127.0.0.1", 0));
    EDDY_ASSERT(accepting);
    auto a = co_await here.connect(accepting->local());
    auto b = co_await accepting->accept();
    EDDY_ASSERT(a && b);
    co_return pair{std::move(*a), std::move(*b)};
}

task<> speak(stream to, std::string_view bytes, run& how) {
    bool broken = false;
    co_await with_scope([&](scope& tasks) -> task<> {
        tasks.spawn(drain(to));
        co_await write_in_cuts(to, bytes, how, broken);
        if (how.flags & peer_goes_away) co_return;
        static_cast<void>(to.shutdown_write());
        static_cast<void>(co_await loop::current().sleep_for(20s));
    });
}

task<result<>> against_bytes(std::string_view input, run& how) {
    pair ends = co_await connected();
    end_of_talk at;
    co_await join_scope([&](scope& tasks) -> task<> {
        tasks.spawn(talk(std::move(ends.a), (how.flags & client_is_tested) != 0, how, at));
        tasks.spawn(speak(std::move(ends.b), input, how));
        co_return;
    });
    EDDY_ASSERT(at.how);
    co_return result<>();
}

task<result<>> between_ends(std::vector<change> changes, run& how, end_of_talk& tested,
                            end_of_talk& peer, bool& touched) {
    pair left = co_await connected();
    pair right = co_await connected();
    const bool client = (how.flags & client_is_tested) != 0;
    co_await join_scope([&](scope& tasks) -> task<> {
        tasks.spawn(talk(std::move(left.a), client, how, tested));
        tasks.spawn(talk(std::move(right.a), !client, how, peer));
        tasks.spawn(std::getenv("EDDY_FUZZ_RECORD")
                        ? record_and_relay(right.b, left.b)
                        : relay(right.b, left.b, std::move(changes), how, touched));
        bool never = false;
        co_await relay(left.b, right.b, {}, how, never);
    });
    co_return result<>();
}

/// Ends that wait for bytes which were taken out wait for ever.
task<> main_task(std::string_view input, run how) {
    constexpr duration patience = 60s;
    if (how.flags & raw_bytes) {
        const result<> over = co_await with_timeout(patience, against_bytes(input, how));
        EDDY_ASSERT(over.has_value());
        co_return;
    }
    end_of_talk tested;
    end_of_talk peer;
    bool touched = false;
    const result<> over = co_await with_timeout(
        patience, between_ends(changes_in(input), how, tested, peer, touched));
    for (const end_of_talk* one : {&tested, &peer}) {
        EDDY_ASSERT(one->genuine && one->received <= how.text_size);
        if (one->how == errc::end_of_stream) EDDY_ASSERT(one->received == how.text_size);
        const bool orderly = over.has_value() && one->how == errc::end_of_stream;
        if (!touched && !orderly)
            std::fprintf(stderr, "the %s end has read %zu bytes: %s\n",
                         one == &peer ? "other" : "tested", one->received,
                         one->how.message().c_str());
        EDDY_ASSERT(touched || orderly);
    }
}

int same_numbers(unsigned char* into, int size) {
    for (int i = 0; i < size; ++i) into[i] = static_cast<unsigned char>(0x42 + i * 7);
    return 1;
}
int always_ready() { return 1; }

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
    static const RAND_METHOD method = {nullptr, same_numbers, nullptr,
                                       nullptr, same_numbers, always_ready};
    return RAND_set_rand_method(&method) == 1 ? 0 : 1;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 3) return 0;
    loop_options options;
    options.kind = io_backend_kind::sim;
    options.sim.seed = data[1];
    if (data[0] & small_sockets) options.sim.socket_buffer = 500;
    if (data[0] & short_reads) options.sim.short_read = 0.2;
    options.sim.max_delay = 20us;
    const auto here = loop::create(options);
    EDDY_ASSERT(here);
    const std::string_view rest(reinterpret_cast<const char*>(data) + 3, size - 3);
    (*here)->run(main_task(rest, {data[0], data[2] * 200U, random_generator(data[1])}));
    return 0;
}
