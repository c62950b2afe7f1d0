// `eddy bench ws URL`: messages to a WebSocket server that echoes them.
#include <eddy/base/random.hpp>

#include "cli/bench/commands.hpp"
#include "cli/bench/http/ws_conversation.hpp"
#include "cli/bench/options.hpp"

#include <memory>
#include <utility>

namespace eddy::cli::bench {
namespace {

constexpr std::size_t message_limit = std::size_t{16} << 20;

class ws_protocol final : public protocol {
public:
    explicit ws_protocol(ws_work work) : work_(std::move(work)) {}
    std::unique_ptr<conversation> make_first() override {
        return std::make_unique<ws_conversation>(work_, entropy_seed(), true);
    }
    std::unique_ptr<conversation> make() const override {
        return std::make_unique<ws_conversation>(work_, entropy_seed(), false);
    }

private:
    ws_work work_;
};

std::unique_ptr<protocol> make_ws(const arguments& given, const target& to, load_options& wanted) {
    std::size_t size = 20;
    if (!read_number(given, "size", 0, message_limit, size) ||
        !can_be_prepared(wanted, size + websocket::frame_head::size_limit, "frames"))
        return nullptr;
    ws_work work(size, given.is_set("text") ? websocket::opcode::text : websocket::opcode::binary,
                 wanted.pipeline, entropy_seed());
    work.target = to.path;
    work.verifies = !given.is_set("no-verify");
    if (!read_headers(given, to, work.headers)) return nullptr;
    return std::make_unique<ws_protocol>(std::move(work));
}

int run_ws(context& with, const arguments& given) { return run_bench(with, given, "ws", make_ws); }

}  // namespace

command ws_command() {
    command c;
    c.name = "bench ws";
    c.operands = "URL";
    c.summary = "measure a WebSocket server that echoes messages";
    c.least = c.most = 1;
    c.flags = load_flags();
    c.flags.insert(
        c.flags.begin(),
        {{.name = "size", .value_name = "BYTES", .help = "of a message", .default_value = "20"},
         {.name = "text", .help = "send text; else binary"}});
    c.examples = {
        {"eddy bench ws ws://127.0.0.1:8080/echo", "messages of 20 bytes"},
        {"eddy bench ws ws://127.0.0.1:8080/echo --size 65536 -P 4", "windows of four long ones"},
        {"eddy bench ws wss://127.0.0.1:8443/echo -k --rate 10000", "over TLS, at a given load"},
    };
    c.more =
        "Echoes are checked before the run, and while it lasts their first 16 KiB. Errors are "
        "counted\n"
        "by kind, and the exit status is 2 if there were any. The report says so when this "
        "program\n"
        "was above 90 % of its CPU: it may have been the limit then.";
    c.run = run_ws;
    return c;
}

}  // namespace eddy::cli::bench
