// Two handles of one connection.
// Refused: deleted
#include <eddy/io/stream.hpp>

#include <utility>

eddy::stream use(eddy::stream one) {
#ifdef EDDY_REFUSED
    eddy::stream two = one;
#else
    eddy::stream two = std::move(one);
#endif
    return two;
}
