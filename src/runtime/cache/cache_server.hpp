// The cache runtime: RESP clients on one side, the engine on the other.
//
// A read's commands are parsed where they were received and executed as one batch; their replies go
// out by one write. Only the part of a command at a read's end is copied. The batch and the reply
// buffer are shared by all clients, which are served in turn; a client has memory of its own only
// while a command is incomplete or it does not take its replies.
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/histogram.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/wire/resp/request.hpp>

#include "cache/engine.hpp"
#include "runtime/cache/client.hpp"
#include "runtime/cache/options.hpp"
#include "runtime/connections.hpp"
#include "runtime/listening.hpp"
#include "runtime/runtime.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime::cache {

/// One loop's thread.
class cache_server final : public instance {
public:
    explicit cache_server(creation from);
    ~cache_server() override;

    task<outcome<>> start() override;
    task<void> stop(duration drain) override;
    counters count() const override;
    endpoint local() const override;
    task<outcome<std::uint64_t>> send(std::string message) override;
    outcome<> apply(const settings& changed) override;
    task<outcome<>> check_restart() override;

private:
    enum class next : std::uint8_t {
        read,   ///< for more bytes
        wait,   ///< until the session is no longer blocked
        again,  ///< send the replies, then go on with the same input
        close,  ///< send the replies, then close
    };

    task<void> accept_all(listener& from);
    task<void> serve(std::unique_ptr<client> c);
    next receive(client& c, std::string_view received);
    next execute_rest(client& c);
    next execute(client& c, std::string_view input, std::size_t& used);
    void keep(client& c, std::string_view bytes);
    task<void> wait_for_turn_end();
    bool waits_for_disk() const noexcept;
    task<bool> wait_for_disk();
    task<outcome<>> open_files();
    bool fits_queue(client& c);
    bool send_now(client& c);
    task<bool> send_rest(client& c);
    task<void> serve_attentively(client& c);
    task<void> attend(client& c, scope& tasks);
    task<void> read_ahead(client& c);
    task<result<>> wait_for_something(client& c);
    task<void> keep_up();
    task<outcome<>> load();
    task<void> keep_saved();
    task<void> write_save();
    task<void> save_at_end();
    std::string dump_path() const;
    task<void> go_on_with_scripts();
    void tell_time();
    connections::limits limits() const noexcept;

    std::string name_;
    settings options_;
    journal& events_;
    std::shared_ptr<supervisor> above_;
    config config_;
    counters counted_;
    std::shared_ptr<histogram> latency_ = std::make_shared<histogram>();
    connections clients_;
    eddy::cache::statistics last_stats_;

    // Shared by all clients, which use them within one turn.
    resp::request_batch batch_;
    resp::request_parser parser_;
    byte_buffer replies_;
    std::vector<byte_buffer> spare_buffers_;
    std::size_t waiting_bytes_ = 0;
    time_point told_time_{};
    std::chrono::microseconds told_time_of_day_{};
    std::uint32_t batches_ = 0;
    event work_done_;
    event script_is_late_;

    // While it runs.
    struct running;
    std::unique_ptr<running> running_;
};

}  // namespace eddy::runtime::cache
