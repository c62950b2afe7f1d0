// Making a sequence, or asking for its next value, and not awaiting it.
// Refused: nodiscard|unused-result|unused-value
#include <eddy/io/generator.hpp>

eddy::task<> use(eddy::stream from) {
    auto incoming = eddy::leases(from);
#ifdef EDDY_REFUSED
    incoming.next();
#endif
    static_cast<void>(co_await incoming.next());
}
