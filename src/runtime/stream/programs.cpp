// Programs that answer clients.
#include "runtime/stream/programs.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/process.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <string_view>
#include <utility>
#include <vector>

namespace eddy::runtime::stream {
namespace {

constexpr std::string_view variable = "HANDOFF_DATA=";

std::vector<std::string> environment_with(const std::string& message) {
    std::vector<std::string> made;
    for (char** each = environ; *each != nullptr; ++each)
        if (!std::string_view(*each).starts_with(variable)) made.emplace_back(*each);
    made.push_back(std::string(variable) + message);
    return made;
}

task<void> await_end(process program, backend::observer& owner) {
    const time_point begun = loop::current().now();
    const auto status = co_await program.wait();
    // Killed by close(), with its object.
    if (!status && status.error() == errc::cancelled)
        owner.on_fault(backend::no_client, "program_killed");
    else if (status && status->success())
        owner.on_end(backend::no_client, loop::current().now() - begun);
    else
        owner.on_fault(backend::no_client, "program_failed");
}

}  // namespace

result<> programs::start(const unique_fd& client, const request& from) {
    EDDY_ASSERT(has_room());
    process_options how;
    how.input = how.output = stdio::shared;
    how.descriptor = client.get();
    // Programs do not expect what an event-driven web server sets on its sockets.
    const int flags = ::fcntl(client.get(), F_GETFL);
    if (flags >= 0) static_cast<void>(::fcntl(client.get(), F_SETFL, flags & ~O_NONBLOCK));
    how.own_group = true;  // the shell's programs end with it
    how.environment = environment_with(from.message);
    auto started = process::start({"/bin/sh", "-c", command_}, how);
    if (!started) return fail(started.error());
    tasks_.spawn(await_end(std::move(*started), owner_));
    return {};
}

task<void> programs::close(duration limit) {
    loop& here = loop::current();
    const time_point until = here.after(limit);
    while (running() > 0 && here.now() < until)
        if (auto slept = co_await here.sleep_for(std::chrono::milliseconds(5)); !slept) break;
    tasks_.cancel();
    co_await tasks_.join();
}

}  // namespace eddy::runtime::stream
