// Fuzz target of the cache engine, with two clients that send anything: it neither crashes nor
// grows without bound, and all that it sends is whole, well-formed replies; one for each command,
// as long as the client does nothing that changes that.
//
// The first byte chooses the options; the rest is the clients' stream, of which each gets a batch
// in turn. Time passes between batches, so that keys expire and waits end.
#include <eddy/base/assert.hpp>
#include <eddy/wire/resp.hpp>

#include "cache/engine/engine.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace {

using namespace eddy;

class fuzz_client {
public:
    explicit fuzz_client(cache::engine& engine) : engine_(engine), session_(engine) {}

    cache::client_session& session() noexcept { return session_; }

    /// Executes until the commands end, or the client waits or is closed.
    void execute(std::span<const resp::command> commands) {
        for (std::size_t done = 0; done < commands.size() && !session_.closing;) {
            byte_buffer out;
            const std::size_t count = engine_.execute(session_, commands.subspan(done), out);
            EDDY_ASSERT(count > 0 || session_.blocked || session_.closing);
            done += count;
            executed_ += count;
            check(out);
            if (session_.blocked) return;
        }
    }
    void take_output() {
        byte_buffer out;
        engine_.take_output(session_, out);
        check(out);
    }

private:
    void check(const byte_buffer& out) {
        replies_.count(out.text());
        EDDY_ASSERT(!replies_.malformed());
        // Output beyond its limit is dropped, at any byte.
        if (session_.closing) return;
        EDDY_ASSERT(replies_.at_boundary());
        plain_ = plain_ && session_.special == 0 && session_.extras == nullptr;
        EDDY_ASSERT(!plain_ || replies_.replies() == executed_);
    }

    cache::engine& engine_;
    cache::client_session session_;
    resp::reply_counter replies_;
    std::uint64_t executed_ = 0;
    bool plain_ = true;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    cache::engine_options options;
    options.seed = 1;
    options.mode = (data[0] & 1) != 0 ? cache::access_mode::admin : cache::access_mode::readwrite;
    options.policy = (data[0] & 2) != 0 ? cache::eviction::allkeys_lru : cache::eviction::none;
    options.max_memory = (data[0] & 4) != 0 ? 64 * 1024 : 0;
    // Small limits, or a few bytes could ask for half a gigabyte of zeros.
    options.max_text = 1 << 20;
    options.max_reply = 4 << 20;
    options.clients.max_transaction = 1 << 20;
    options.clients.max_names = 1 << 20;
    options.clients.max_outbox = 4 << 20;

    cache::engine engine(options);
    fuzz_client clients[2] = {fuzz_client(engine), fuzz_client(engine)};
    resp::request_parser parser;
    resp::request_batch batch;
    std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
    std::chrono::microseconds now{1'700'000'000'000'000};
    for (std::size_t turn = 0;; ++turn) {
        engine.set_time(now += std::chrono::milliseconds(10));
        const resp::batch_outcome parsed = batch.parse(parser, input);
        // One command at a time goes to the two in turn.
        for (std::size_t i = 0; i < parsed.commands.size(); ++i) {
            fuzz_client& whose = clients[(turn + i / 3) % 2];
            engine.end_wait(whose.session());
            whose.take_output();
            if (!whose.session().blocked) whose.execute(parsed.commands.subspan(i, 1));
        }
        for (fuzz_client& each : clients) each.take_output();
        engine.upkeep();
        input.remove_prefix(parsed.consumed);
        if (parsed.status != resp::parse_status::complete) break;
    }
    return 0;
}
