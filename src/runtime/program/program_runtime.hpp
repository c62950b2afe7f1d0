// Program: the runtime that starts a program of the machine, keeps its sockets, reads its output,
// checks its health, and starts it again.
#pragma once

#include <eddy/io/blocking.hpp>
#include <eddy/io/datagram.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/process.hpp>
#include <eddy/io/scope.hpp>

#include "io/tasks/backoff.hpp"
#include "runtime/instance.hpp"
#include "runtime/listening.hpp"
#include "runtime/program/options.hpp"
#include "runtime/program/output.hpp"
#include "runtime/programs/program_guard.hpp"
#include "runtime/serving/inherited_listeners.hpp"
#include "serving/counters.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace eddy::runtime::program {

/// The program leads a process group, which ends with it: what it leaves behind is killed, also
/// what has left the group, by the variable EDDY_PROGRAM of its environment. It gets SIGKILL when
/// this process ends however that comes, and the others by a program_guard. Only processes that
/// were started here get signals, by a pidfd, or by a group's number before its leader is reaped.
/// One loop's thread.
class program_runtime final : public instance {
public:
    /// Time for --notify's READY=1.
    static constexpr duration ready_patience = std::chrono::seconds(25);
    /// After SIGKILL, which a program in an uninterruptible wait of the kernel does not take.
    static constexpr duration kill_patience = std::chrono::seconds(5);
    /// For the last output of a program that has ended.
    static constexpr duration output_patience = std::chrono::seconds(1);

    explicit program_runtime(creation from);

    /// Opens the sockets, and starts the program. With --notify it waits for READY=1, for at most
    /// ready_patience.
    task<outcome<>> start() override;
    void give_up_start() noexcept override;
    /// Sends --stop-signal to the program's group, and SIGKILL after --stop-timeout, which counts
    /// in place of `drain`.
    task<void> stop(duration drain) override;
    void end_drain() noexcept override;
    task<std::shared_ptr<inherited_listeners>> hand_over_listeners() override;
    outcome<> take_back(inherited_listeners& from) override;
    outcome<std::shared_ptr<passed_listeners>> share_listeners() override;
    void unshare_listeners() noexcept override;
    void open() override { unshare_listeners(); }
    metrics count() const override;
    /// Address of its first socket.
    endpoint local() const override;
    std::string fault() const override;
    std::string detail() const override;
    task<outcome<>> check_restart(settings next, bool discards_data) override;
    /// Sends --reload-signal, if there is one.
    task<outcome<bool>> reread() override;
    outcome<> apply(const settings& changed) override;

private:
    using datagram_socket = inherited_listeners::unread_datagram;
    struct open_socket {
        transport::address where;
        std::variant<noted_listener, datagram_socket> from;

        int native_handle() const noexcept;
        endpoint local() const;
    };

    outcome<> open_sockets();
    outcome<open_socket> open_socket_at(const transport::address& where);
    void move_sockets(inherited_listeners& to);
    void give_back_sockets();
    outcome<> open_notifications();
    task<outcome<>> prepare();
    task<outcome<>> await_ready();
    task<void> close();

    task<outcome<process_options>> plan();
    task<outcome<>> launch();
    task<void> supervise();
    task<void> run_once();
    task<void> read_output(stream from, std::string_view mark);
    task<void> read_notifications();
    void take_notification(std::string_view text);
    task<void> watch_health();
    task<void> end_program();
    bool has_ended() const noexcept;
    void signal_group(int number) noexcept;
    void note_end(const result<exit_status>& status);
    void request_end();
    bool may_restart() const noexcept;
    void renew_pauses();
    task<bool> pause();

    const std::string name_;
    settings given_;
    serving::journal& events_;
    const std::shared_ptr<runtime::host> host_;
    config chosen_;
    serving::counters counted_;
    serving::tally restarts_;
    output output_{events_, counted_, chosen_};
    blocking_pool disk_{{.max_threads = 1}};
    const std::string marker_;  // variable of all that it starts
    std::shared_ptr<program_guard> guard_;
    std::vector<open_socket> sockets_;
    std::shared_ptr<inherited_listeners> inherited_;
    unique_fd notifications_;  // with --notify
    std::string notify_socket_;
    std::optional<backoff> pauses_;
    std::optional<process> program_;  // while it runs
    time_point begun_{};              // of the program that runs, or that ran
    time_point next_start_{};         // while it waits for that
    event idle_;                      // no program runs
    event started_;                   // READY=1, or no hope for that
    event output_ended_;
    event has_sockets_;        // no other instance has them
    std::size_t readers_ = 0;  // of its output
    std::uint64_t restarts_in_a_row_ = 0;
    std::uint64_t failed_checks_ = 0;  // in a row
    std::string health_fault_;         // of the last check; empty: it succeeded
    std::string ending_;               // of the last program
    std::string status_text_;          // STATUS= of sd_notify(3)
    bool has_failed_ = false;          // the last program
    bool was_checked_ = false;         // its health, since its start
    bool is_unhealthy_ = false;
    bool is_ready_ = false;
    bool is_waiting_ = false;  // for its next start
    bool is_started_ = false;  // start() has succeeded
    bool is_stopping_ = false;
    bool ended_before_stop_ = false;  // by itself, and the stop had not begun
    bool is_given_up_ = false;        // the start
    bool is_starting_ = false;        // --notify's word is awaited
    std::optional<scope> tasks_;      // while it runs
};

}  // namespace eddy::runtime::program
