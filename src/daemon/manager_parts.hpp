// Helpers shared by the files of the manager, and by them alone.
#pragma once

#include "daemon/manager.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace eddy::daemon {

/// The same problem with what was attempted in front.
inline std::unexpected<problem> with_context(std::string_view attempt, problem cause) {
    cause.message = std::string(attempt) + ": " + cause.message;
    return std::unexpected(std::move(cause));
}

inline std::unexpected<problem> interrupted() {
    return refuse(503, "the daemon is stopping; try again with the next one");
}

std::unexpected<problem> vanished(const managed_runtime& which);

/// managed_runtime::carried, when it is about to be lost.
inline constexpr std::string_view carried_text =
    "the data of its last instance is in memory alone; start it, or lose that by --force";
inline constexpr std::string_view carried_loss = "the data of its last instance";

/// What the table says, and then what it cannot say.
outcome<runtime::settings> check_options(const runtime::type& type, const json& given);

/// Gives the turn back at the end of a block.
class turn_guard {
public:
    explicit turn_guard(turnstile& at) noexcept : at_(at) {}
    ~turn_guard() { at_.leave(); }
    turn_guard(const turn_guard&) = delete;
    turn_guard& operator=(const turn_guard&) = delete;

private:
    turnstile& at_;
};

}  // namespace eddy::daemon
