// Fuzz target of the request parser: whatever the bytes, however they are split, one command at a
// time or in batches, with large arguments in places of their own or not, it finds the same
// commands and the same error, and its views stay within the input.
//
// The first eight bytes seed the splits and choose the limits; the rest is the stream.
#include <eddy/base/assert.hpp>
#include <eddy/base/random.hpp>
#include <eddy/wire/resp/request.hpp>

#include <algorithm>
#include <cstring>
#include <deque>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace {

using namespace eddy;

struct parsed {
    std::vector<std::vector<std::string>> commands;
    std::string error;
    std::size_t unread = 0;

    friend bool operator==(const parsed&, const parsed&) = default;
};

struct choice {
    resp::request_limits limits;
    bool unauthenticated;
};

void keep(parsed& result, const resp::command& command, const choice& choice) {
    EDDY_ASSERT(command.size() > 0);
    for (const std::string_view arg : command.args()) {
        EDDY_ASSERT(arg.size() <= std::max(choice.limits.max_bulk, choice.limits.max_inline));
    }
    result.commands.emplace_back(command.args().begin(), command.args().end());
}

// Feeds `stream` in pieces of random size; each call sees a copy, so that no byte is read beyond.
parsed parse(std::string_view stream, const choice& choice, std::uint64_t seed,
             std::size_t longest_piece, bool batches,
             std::size_t placed_from = std::numeric_limits<std::size_t>::max()) {
    random_generator random(seed);
    resp::request_parser parser(choice.limits);
    const auto batch = std::make_unique<resp::request_batch>();
    parsed result;
    std::string pending;
    std::deque<std::string> placed;
    std::size_t missing = 0;  // of the last one
    while (!stream.empty() && result.error.empty()) {
        const std::size_t size =
            std::min<std::size_t>(1 + random.below(longest_piece), stream.size());
        if (missing > 0) {
            const std::size_t taken = std::min(size, missing);
            placed.back() += stream.substr(0, taken);
            stream.remove_prefix(taken);
            missing -= taken;
            if (missing > 0) continue;
            parser.place_argument(placed.back().data());
        } else {
            pending += stream.substr(0, size);
            stream.remove_prefix(size);
        }
        for (bool more = true; more;) {
            const auto copy = std::make_unique<char[]>(pending.size());
            std::memcpy(copy.get(), pending.data(), pending.size());
            const std::string_view input(copy.get(), pending.size());
            resp::parse_status status{};
            std::size_t consumed = 0;
            if (batches) {
                const resp::batch_outcome outcome =
                    batch->parse(parser, input, choice.unauthenticated);
                for (const resp::command& command : outcome.commands) {
                    if (command.repeats_name) {
                        EDDY_ASSERT(&command != outcome.commands.data());
                        EDDY_ASSERT(command.name() == (&command - 1)->name());
                    }
                    keep(result, command, choice);
                }
                status = outcome.status;
                consumed = outcome.consumed;
                result.error = outcome.error;
            } else {
                const resp::request_outcome outcome = parser.next(input, choice.unauthenticated);
                status = outcome.status;
                if (status == resp::parse_status::complete) keep(result, outcome.request, choice);
                consumed = outcome.consumed;
                result.error = outcome.error;
            }
            EDDY_ASSERT(consumed <= pending.size());
            EDDY_ASSERT((status == resp::parse_status::error) == !result.error.empty());
            pending.erase(0, consumed);
            if (consumed > 0) placed.clear();
            more = status == resp::parse_status::complete;
            if (status == resp::parse_status::need_more && parser.open_argument() >= placed_from) {
                const std::size_t begin = parser.open_argument_offset();
                placed.emplace_back().reserve(parser.open_argument() + 2);  // it stays there
                placed.back() = pending.substr(begin);
                missing = parser.open_argument() + 2 - placed.back().size();
                pending.erase(begin);
            }
        }
    }
    if (!result.error.empty()) return result;
    result.unread = pending.size();
    for (const std::string& each : placed) result.unread += each.size();
    return result;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::uint64_t seed = 0;
    if (size < sizeof seed) return 0;
    std::memcpy(&seed, data, sizeof seed);
    const std::string_view stream(reinterpret_cast<const char*>(data) + sizeof seed,
                                  size - sizeof seed);
    choice choice{};
    choice.unauthenticated = (seed & 1) != 0;
    if ((seed & 2) != 0) choice.limits = {32, 12, 100, 300, 4, 20};

    const parsed whole =
        parse(stream, choice, seed, std::max<std::size_t>(stream.size(), 1) * 64, false);
    const std::size_t longest = 1 + (seed >> 8) % 64;
    EDDY_ASSERT(parse(stream, choice, seed, longest, false) == whole);
    EDDY_ASSERT(parse(stream, choice, seed + 1, longest, true) == whole);
    const std::size_t placed_from = 1 + (seed >> 16) % 16;
    EDDY_ASSERT(parse(stream, choice, seed + 2, longest, (seed & 4) != 0, placed_from) == whole);
    return 0;
}
