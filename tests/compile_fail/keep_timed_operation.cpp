// Keeping a deadline longer than the operation that it is for.
// Refused: no member named|no matching|invalid operands|lvalue|no member
#include <eddy/io/stream.hpp>
#include <eddy/io/timeout.hpp>

using namespace std::chrono_literals;

eddy::task<> read(eddy::stream from) {
#ifdef EDDY_REFUSED
    auto later = eddy::with_timeout(1s, from.read());
    static_cast<void>(co_await later);
#endif
    static_cast<void>(co_await eddy::with_timeout(1s, from.read()));
}
