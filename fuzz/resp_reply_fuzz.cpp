// Fuzz target of the two readers of replies: at any split the parser gives the same events and the
// counter the same counts, and both agree on how many replies a stream holds.
//
// The first eight bytes seed the splits and choose the limits; the rest is the stream.
#include <eddy/base/assert.hpp>
#include <eddy/base/random.hpp>
#include <eddy/wire/resp/reply_counter.hpp>
#include <eddy/wire/resp/reply_parser.hpp>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace {

using namespace eddy;

struct event {
    resp::reply_type type;
    bool ends_reply;
    std::uint32_t depth;
    std::int64_t integer;
    std::uint64_t count;
    std::string text;

    friend bool operator==(const event&, const event&) = default;
};

struct parsed {
    std::vector<event> events;
    std::string error;
    std::size_t unread = 0;
    bool at_boundary = false;

    friend bool operator==(const parsed&, const parsed&) = default;
};

// Feeds `stream` in pieces of random size; each call sees a copy, so that no byte is read beyond.
parsed parse(std::string_view stream, const resp::reply_limits& limits, std::uint64_t seed,
             std::size_t longest_piece) {
    random_generator random(seed);
    resp::reply_parser parser(limits);
    parsed result;
    std::string pending;
    while (!stream.empty() && result.error.empty()) {
        const std::size_t size =
            std::min<std::size_t>(1 + random.below(longest_piece), stream.size());
        pending += stream.substr(0, size);
        stream.remove_prefix(size);
        for (bool more = true; more;) {
            const auto copy = std::make_unique<char[]>(pending.size());
            std::memcpy(copy.get(), pending.data(), pending.size());
            const resp::reply_outcome outcome = parser.next({copy.get(), pending.size()});
            more = outcome.status == resp::parse_status::complete;
            EDDY_ASSERT(outcome.consumed <= pending.size() && more == (outcome.consumed > 0));
            result.error = outcome.error;
            if (more) {
                const resp::reply_event& e = outcome.event;
                EDDY_ASSERT(e.depth <= resp::reply_parser::max_depth);
                result.events.push_back(
                    {e.type, e.ends_reply, e.depth, e.integer, e.count, std::string(e.text)});
            }
            pending.erase(0, outcome.consumed);
        }
    }
    result.unread = result.error.empty() ? pending.size() : 0;
    result.at_boundary = parser.at_boundary();
    return result;
}

resp::reply_counter count(std::string_view stream, std::uint64_t seed, std::size_t longest_piece) {
    random_generator random(seed);
    resp::reply_counter counter;
    std::uint64_t sum = 0;
    while (!stream.empty()) {
        const std::size_t size =
            std::min<std::size_t>(1 + random.below(longest_piece), stream.size());
        const auto copy = std::make_unique<char[]>(size);
        std::memcpy(copy.get(), stream.data(), size);
        sum += counter.count({copy.get(), size});
        stream.remove_prefix(size);
    }
    EDDY_ASSERT(sum == counter.replies());
    return counter;
}

void expect_agreement(const parsed& parsed, const resp::reply_counter& counter) {
    std::uint64_t replies = 0;
    std::uint64_t pushes = 0;
    bool is_push = false;
    for (const event& event : parsed.events) {
        if (event.depth == 0) is_push = event.type == resp::reply_type::push;
        if (event.ends_reply) ++(is_push ? pushes : replies);
    }
    EDDY_ASSERT(!counter.malformed());
    EDDY_ASSERT(counter.replies() == replies && counter.pushes() == pushes);
    EDDY_ASSERT(counter.at_boundary() == parsed.at_boundary);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::uint64_t seed = 0;
    if (size < sizeof seed) return 0;
    std::memcpy(&seed, data, sizeof seed);
    const std::string_view stream(reinterpret_cast<const char*>(data) + sizeof seed,
                                  size - sizeof seed);
    resp::reply_limits limits;
    if ((seed & 1) != 0) limits = {32, 64, 10};
    const std::size_t longest = 1 + (seed >> 8) % 64;
    const std::size_t all = std::max<std::size_t>(stream.size(), 1) * 64;

    const parsed whole = parse(stream, limits, seed, all);
    EDDY_ASSERT(parse(stream, limits, seed, longest) == whole);

    const resp::reply_counter counter = count(stream, seed, all);
    const resp::reply_counter pieces = count(stream, seed, longest);
    EDDY_ASSERT(pieces.replies() == counter.replies() && pieces.errors() == counter.errors());
    EDDY_ASSERT(pieces.pushes() == counter.pushes() && pieces.malformed() == counter.malformed());
    EDDY_ASSERT(pieces.at_boundary() == counter.at_boundary());
    // The counter may refuse the beginning of a line whose end the parser still waits for.
    const bool refused_early = counter.malformed() && whole.unread > 0;
    if (whole.error.empty() && !refused_early) expect_agreement(whole, counter);
    return 0;
}
