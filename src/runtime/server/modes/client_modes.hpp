// Modes of a server (--mode) and commands of its clients (--cache, --mode master) on one loop:
// where a client's messages go, and the replies that it alone gets.
#pragma once

#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include "runtime/server/broadcast.hpp"
#include "runtime/server/client.hpp"
#include "runtime/server/exchange.hpp"
#include "runtime/server/modes/cache_link.hpp"
#include "runtime/server/modes/line_commands.hpp"
#include "runtime/server/options.hpp"
#include "runtime/server/server_context.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime::server {

/// One loop's thread, but for what says otherwise.
class client_modes {
public:
    /// The references outlive it. `others` is null with one loop.
    client_modes(server_context& of, const config& chosen, broadcast& out, exchange_end* others);

    /// Live options.
    void apply(const config& chosen);

    /// True if there are commands among the lines of clients.
    bool has_commands() const noexcept { return rules_.any(); }
    /// See split_commands().
    line_command_split split(std::string_view input) const noexcept {
        return rules_.any() ? split_commands(input, rules_)
                            : line_command_split{.size = input.size()};
    }

    /// Receivers of a client's messages.
    enum class route : std::uint8_t { none, others, master };
    route route_of(const client& of) const noexcept;
    /// The beginning of `lines` that can be forwarded at once: whole lines of a piece's size with
    /// their prefixes. All of it for other routes.
    std::string_view bounded(std::string_view lines, route to) const noexcept;
    /// Sends whole lines of a client on, by its route.
    void send_on(client& from, std::string_view messages, std::uint64_t count, route to,
                 time_point arrived);
    /// Delivers what another loop has sent, as broadcast::deliver().
    void deliver(const shared_messages& what);

    /// A client's line `master PASSWORD`: it gets an answer.
    void claim(client& by, std::string_view password);
    /// The same without a password, in two steps: false where its address is locked out, after an
    /// answer; else decide() must follow.
    bool begin_claim(client& by);
    /// A script has granted a client's claim, or not.
    void decide(client& by, bool is_granted);
    /// A client is about to be closed: it is master no more.
    void leave(const client& gone);

    /// Commands of a client, which gets the replies. Fails with errc::cancelled.
    task<result<>> run_commands(client& by, std::vector<std::string> commands);
    /// Any thread: its counts.
    const cache_link& cache() const noexcept { return cache_; }

private:
    enum class refusal : std::uint8_t { wrong, locked, count };
    master_claim::holder holder_of(const client& of) const noexcept;
    void answer(client& by, claim_answer with);
    void reply(client& to, std::string_view lines) const;
    void note(refusal why, const client& by);

    server_context& context_;
    broadcast& out_;
    exchange_end* others_;
    flow mode_;
    bool is_by_line_;
    bool forwards_;
    std::size_t longest_line_;
    line_command_rules rules_;
    cache_link cache_;
    client* master_here_ = nullptr;  // if it is a client of this loop
    std::array<std::optional<time_point>, static_cast<std::size_t>(refusal::count)> noted_at_;
};

}  // namespace eddy::runtime::server
