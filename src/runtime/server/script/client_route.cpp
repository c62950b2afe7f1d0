// Routes of clients to other runtimes.
#include "runtime/server/script/client_route.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/scope.hpp>

#include "base/text/line_splitter.hpp"

namespace eddy::runtime::server {

bool client_route::send(std::string_view message) {
    if (is_closed_) return true;
    unsent_.append(message);
    unsent_.append('\n');
    filled_.set();
    return unsent_.size() < max_route_queue;
}

task<void> client_route::room() {
    while (!is_closed_ && unsent_.size() >= max_route_queue) {
        emptied_.reset();
        if (!co_await emptied_.wait()) co_return;
    }
}

void client_route::close() noexcept {
    is_closed_ = true;
    filled_.set();
    emptied_.set();
}

task<void> client_route::write() {
    for (;;) {
        while (unsent_.empty()) {
            if (is_closed_) co_return;
            filled_.reset();
            if (!co_await filled_.wait()) co_return;
        }
        const byte_buffer sending = std::move(unsent_);
        emptied_.set();
        if (!co_await over_.write_all(sending.bytes())) co_return;
    }
}

task<void> client_route::run(std::size_t longest, std::function<void(std::string_view)> each) {
    // The writer's end, also by close(), ends the reader; the reader's end the writer.
    cancel_source reading(co_await current_source());
    scope writer;
    writer.spawn([](client_route& of, cancel_source& other) -> task<void> {
        co_await of.write();
        other.request();
    }(*this, reading));
    co_await [](client_route& of, std::size_t most,
                std::function<void(std::string_view)>& give) -> task<void> {
        line_splitter lines;
        for (;;) {
            const result<lease> got = co_await of.over_.read();
            if (!got) co_return;
            lines.take(got->text(), most,
                       [&](std::string_view line, bool /*is_cut*/) { give(line); });
        }
    }(*this, longest, each)
                                                                    .under(reading);
    close();
    writer.cancel();
    co_await writer.join();
    over_ = stream();
}

}  // namespace eddy::runtime::server
