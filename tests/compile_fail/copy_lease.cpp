// Two owners of one lent buffer.
// Refused: deleted
#include <eddy/io/stream.hpp>

#include <utility>

eddy::lease use(eddy::lease one) {
#ifdef EDDY_REFUSED
    eddy::lease two = one;
#else
    eddy::lease two = std::move(one);
#endif
    return two;
}
