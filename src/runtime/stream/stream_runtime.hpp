// Stream runtime: takes clients' sockets from web servers, and streams events to them.
#pragma once

#include "handoff/receiver.hpp"
#include "runtime/instance.hpp"
#include "runtime/metrics.hpp"
#include "runtime/scripting/script_metrics.hpp"
#include "runtime/scripting/script_reload.hpp"
#include "runtime/serving/inherited_listeners.hpp"
#include "runtime/stream/limits/stream_deadlines.hpp"
#include "runtime/stream/limits/user_limits.hpp"
#include "runtime/stream/options.hpp"
#include "runtime/stream/sessions.hpp"
#include "runtime/stream/sources/source.hpp"
#include "runtime/stream/stream_log.hpp"
#include "runtime/stream/worker_share.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace eddy::runtime::stream {

/// Parts that a runtime has from its supervisor if it is one of several processes.
struct worker_place {
    handoff::handoff_socket from;  ///< of the type that its options name; without a file
    std::shared_ptr<worker_board> board;
    std::size_t number = 0;  ///< its slot of the board
};

/// One loop's thread.
class stream_runtime final : public instance,
                             handoff::receiver::sink,
                             inherited_listeners::handoff_predecessor,
                             sessions::observer,
                             source::observer,
                             stream_deadlines::observer {
public:
    explicit stream_runtime(creation from);
    /// One of several workers. It can be started once; its limit of streams is that of all workers,
    /// and the supervisor reports their peak.
    stream_runtime(creation from, worker_place place);
    ~stream_runtime() override;

    task<outcome<>> start() override;
    task<void> stop(duration drain) override;
    std::string lost() const override;
    metrics count() const override;
    endpoint local() const override;
    std::string fault() const override;
    outcome<> apply(const settings& changed) override;
    task<outcome<>> check_restart(settings next, bool discards_data) override;
    task<std::shared_ptr<inherited_listeners>> hand_over_listeners() override;
    outcome<> take_back(inherited_listeners& from) override;
    outcome<std::shared_ptr<passed_listeners>> share_listeners() override;
    void unshare_listeners() noexcept override { is_shared_ = false; }
    void open() override;
    void end_drain() noexcept override;
    task<outcome<bool>> reread() override;
    task<outcome<>> reload_script() override;
    void give_up_start() noexcept override { reloads_.give_up(); }

    /// Streams at a time, at most, since it was made.
    std::uint64_t peak_streams() const noexcept { return peak_; }

private:
    void arrive(handoff::arrival what) override;
    bool take(handoff::arrival& what) override;
    void fail_handoff(handoff::fault why) noexcept override;
    void end_group() noexcept override;
    bool prefers_others() const noexcept override;
    void on_loss(std::uint32_t stream, handoff::loss why) noexcept override;
    void on_detach(std::uint32_t stream, std::string_view why) noexcept override;
    void on_expiry(std::uint32_t stream) noexcept override;
    void on_idle(std::uint32_t stream) noexcept override;
    void on_unsent() noexcept override;
    void on_end(std::uint32_t stream, duration since_begin) noexcept override;
    void on_fault(std::uint32_t stream, std::string_view reason) noexcept override;
    void on_response(std::uint32_t stream, const backend_answer& by) noexcept override;
    void on_fallback(std::string_view backend) noexcept override;
    void on_events(std::uint32_t stream, std::uint32_t count) noexcept override;
    void on_overdue(std::uint32_t stream) noexcept override;

    bool answer_without_stream(unique_fd& client, const stream_request& from);
    /// With replay: streams that have not ended, or logs of ended ones.
    bool has_streams_to_continue() const noexcept;
    /// Counts one more stream if it is within the limit; else false.
    bool admit() noexcept;
    /// A stream that was admitted has ended, or could not begin. One that continues without its
    /// client has not ended.
    void release() noexcept;
    outcome<> open_again();
    task<outcome<>> read_and_replace_script();
    result<> open_receiver(const handoff::receiver_options& receiving);
    void warn_of_limit();
    void refuse(unique_fd client, int status, std::string_view reason, const stream_request& to,
                std::chrono::seconds retry_after);
    /// A refusal that counts and is logged by `fault`.
    void refuse_by(std::string_view fault, unique_fd client, int status, std::string_view reason,
                   const stream_request& to,
                   std::chrono::seconds retry_after = std::chrono::seconds(1));
    bool refuse_by_user(unique_fd& client, const stream_request& from);
    void set_limits() noexcept;
    /// It has begun: its limits count.
    void watch(std::uint32_t stream);
    /// It has ended.
    void end_stream(std::uint32_t stream, std::string_view reason) noexcept;
    outcome<> open_log();
    void end_log(std::uint32_t stream, std::string_view reason) noexcept;
    task<void> close_log();
    /// `is_counted`: it continues a stream that was admitted before.
    void begin(unique_fd client, stream_request from, bool is_counted);
    void start_program(unique_fd client, const stream_request& from);
    void count_fault(std::string_view reason) noexcept;
    void count_loss(std::string_view reason) noexcept;

    settings options_;
    std::string name_;
    std::shared_ptr<host> host_;
    serving::journal& events_;
    config config_;
    serving::counters counted_;
    labelled<serving::tally> handoff_faults_;
    labelled<serving::tally> losses_;
    labelled<serving::tally> responses_;
    labelled<serving::tally> fallbacks_;
    histogram handoff_time_;
    histogram stream_time_;
    histogram backend_time_;
    serving::tally handoffs_;
    serving::tally ended_;
    serving::tally resumed_;
    serving::tally reset_;
    std::uint64_t peak_ = 0;
    std::uint64_t cut_ = 0;              // by the last stop
    std::uint64_t killed_ = 0;           // programs, at an end
    std::uint64_t messages_before_ = 0;  // of instances of the source before
    std::uint64_t bytes_before_ = 0;
    script_tallies script_counts_;  // the same
    script_reloads reloads_;
    stream_log log_;

    // State of a worker.
    std::optional<handoff::handoff_socket> adopted_;
    std::unique_ptr<worker_share> share_;

    std::shared_ptr<inherited_listeners> inherited_;  // until it has started
    bool is_held_;                                    // until open()
    bool is_shared_ = false;  // another process has the socket, and its file
    std::weak_ptr<inherited_listeners::handoff_predecessor> predecessor_;
    std::shared_ptr<void> successor_;  // of the one before; until the stop

    // While it runs.
    struct running;
    std::unique_ptr<running> running_;
};

}  // namespace eddy::runtime::stream
