// The cache runtime: RESP clients on one side, the engine on the other.
//
// Its loop is the engine's home. Here are the start and the end, the files, the upkeep and the
// door; worker.hpp serves the clients, on this loop or, with --threads, on loops of their own.
#pragma once

#include <eddy/base/histogram.hpp>

#include "cache/engine.hpp"
#include "cache/traffic.hpp"
#include "runtime/cache/options.hpp"
#include "runtime/cache/worker.hpp"
#include "runtime/cache/workplace.hpp"
#include "runtime/connections.hpp"
#include "runtime/listening.hpp"
#include "runtime/runtime.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace eddy::runtime::cache {

/// One loop's thread.
class cache_server final : public instance {
public:
    explicit cache_server(creation from);
    ~cache_server() override;

    task<outcome<>> start() override;
    void give_up_start() noexcept override;
    task<void> stop(duration drain) override;
    counters count() const override;
    endpoint local() const override;
    task<outcome<std::uint64_t>> send(std::string message) override;
    outcome<> apply(const settings& changed) override;
    task<outcome<>> check_restart() override;

private:
    eddy::cache::traffic moved() const noexcept;
    task<outcome<>> make_workers();
    task<void> end_workers();
    void open_door();
    task<void> close_door();
    task<void> drain_workers(duration limit);
    task<outcome<>> give_up(outcome<> why);
    task<void> forget_keys();
    task<void> accept_all(noted_listener& from, bool is_secure);
    void admit(stream accepted, noted_listener& from);
    void deal(stream accepted, noted_listener& from);
    void deny(stream accepted);
    void deny_after_handshake(stream accepted, noted_listener& from);
    task<void> deny_later(stream accepted, noted_listener& from, handshake under_way);
    handshake note_handshake() noexcept;
    task<outcome<>> open_files();
    void spawn_lasting(std::function<task<void>()> make);
    task<void> keep_up();
    void trim_workers();
    task<outcome<>> load();
    task<void> keep_saved();
    task<void> write_save();
    void end_image(std::string_view fault);
    task<void> save_at_end();
    std::string dump_path() const;
    task<void> catch_up();
    task<void> check_outputs();
    void tell_time();
    worker::limits limits() const noexcept;
    void watch_peer(const stream& accepted) const noexcept;
    void set_limits();
    void note_limits() noexcept;
    task<void> keep_limits();

    std::string name_;
    settings options_;
    journal& events_;
    std::shared_ptr<supervisor> above_;
    config config_;
    counters counted_;
    histogram latency_;  // of workers that have ended
    eddy::cache::statistics last_stats_;
    bool start_given_up_ = false;

    // While it runs.
    struct running;
    std::unique_ptr<running> running_;
};

}  // namespace eddy::runtime::cache
