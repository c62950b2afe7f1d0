// Two owners of one coroutine.
// Refused: deleted
#include <eddy/io/task.hpp>

#include <utility>

eddy::task<> use(eddy::task<> one) {
#ifdef EDDY_REFUSED
    eddy::task<> two = one;
#else
    eddy::task<> two = std::move(one);
#endif
    return two;
}
