// A user's program that links one component, and what it stands on, alone.
#include <eddy/io/loop.hpp>
#include <eddy/net/tcp.hpp>

namespace {

eddy::task<bool> connect_to_oneself() {
    auto listening = eddy::tcp::listen("127.0.0.1", 0);
    if (!listening) co_return false;
    auto client = co_await eddy::tcp::connect("localhost", listening->local().port());
    co_return client.has_value();
}

}  // namespace

int main() {
    auto loop = eddy::loop::create();
    return loop && (*loop)->run(connect_to_oneself()) ? 0 : 1;
}
