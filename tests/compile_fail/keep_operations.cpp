// Keeping a race longer than the operations that run it.
// Refused: no member named|no matching|invalid operands|lvalue|no member
#include <eddy/io/event.hpp>
#include <eddy/io/when.hpp>

eddy::task<> race(eddy::event& a, eddy::event& b) {
#ifdef EDDY_REFUSED
    auto later = eddy::when_any(a.wait(), b.wait());
    static_cast<void>(co_await later);
#endif
    static_cast<void>(co_await eddy::when_any(a.wait(), b.wait()));
}
