// Fuzzes the cache engine with whatever a client may send: it neither crashes nor grows without
// bound, and answers each command with exactly one well-formed reply.
//
// The first byte chooses the options; the rest is the client's stream. Time passes between batches,
// so that keys expire.
#include <eddy/base/assert.hpp>
#include <eddy/wire/resp.hpp>

#include "cache/engine.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace eddy;
    if (size == 0) return 0;
    cache::engine_options options;
    options.seed = 1;
    options.mode = (data[0] & 1) != 0 ? cache::access_mode::admin : cache::access_mode::readwrite;
    options.policy = (data[0] & 2) != 0 ? cache::eviction::allkeys_lru : cache::eviction::none;
    options.max_memory = (data[0] & 4) != 0 ? 64 * 1024 : 0;
    // Small limits, or a few bytes could ask for half a gigabyte of zeros.
    options.max_text = 1 << 20;
    options.max_reply = 4 << 20;

    cache::engine engine(options);
    cache::session client(engine);
    resp::request_parser parser;
    resp::request_batch batch;
    resp::reply_counter replies;
    std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
    std::chrono::microseconds now{1'700'000'000'000'000};
    std::uint64_t executed = 0;
    while (!client.closing) {
        engine.set_time(now += std::chrono::milliseconds(10));
        const resp::batch_outcome parsed = batch.parse(parser, input);
        for (std::size_t done = 0; done < parsed.commands.size() && !client.closing;) {
            byte_buffer out;
            const std::size_t count = engine.execute(client, parsed.commands.subspan(done), out);
            EDDY_ASSERT(count > 0);
            done += count;
            executed += count;
            replies.count(out.text());
            EDDY_ASSERT(!replies.malformed() && replies.at_boundary());
            EDDY_ASSERT(replies.replies() == executed);
        }
        engine.upkeep();
        input.remove_prefix(parsed.consumed);
        if (parsed.status != resp::parse_status::complete) break;
    }
    return 0;
}
