// A user's program: it compiles, links and runs with nothing but eddy::eddy.
#include <eddy/base/result.hpp>

#include <cstdio>

int main() {
    std::error_code error = eddy::make_error_code(eddy::errc::timed_out);
    std::puts(error.message().c_str());
    return error ? 0 : 1;
}
