// End of a failed assertion: one line on standard error, then abort.
#include <eddy/base/assert.hpp>

#include <cstdio>
#include <cstdlib>

namespace eddy::detail {

void assertion_failed(const char* expression, const char* file, int line) noexcept {
    std::fprintf(
        stderr,
        "eddy: assertion failed: %s (%s:%d). Either Eddy has a bug, or this program uses it "
        "otherwise than its headers say.\n",
        expression, file, line);
    std::abort();
}

void precondition_failed(const char* mistake, const char* expression, const char* file,
                         int line) noexcept {
    std::fprintf(stderr, "eddy: assertion failed: %s (%s, %s:%d).\n", mistake, expression, file,
                 line);
    std::abort();
}

}  // namespace eddy::detail
