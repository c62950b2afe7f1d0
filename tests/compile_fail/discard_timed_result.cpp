// An ignored result of a deadline: whether an operation was in time.
// Refused: nodiscard|unused-result
#include <eddy/io/stream.hpp>
#include <eddy/io/timeout.hpp>

using namespace std::chrono_literals;

eddy::task<> use(eddy::stream to) {
#ifdef EDDY_REFUSED
    co_await eddy::with_timeout(1s, to.write_all("hello"));
#endif
    static_cast<void>(co_await eddy::with_timeout(1s, to.write_all("hello")));
}
