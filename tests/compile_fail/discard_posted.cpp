// An ignored result of posting: whether work was accepted.
// Refused: nodiscard|unused-result
#include <eddy/io/executor.hpp>

void use(const eddy::executor& where) {
#ifdef EDDY_REFUSED
    where.post([] {});
#endif
    static_cast<void>(where.post([] {}));
}
