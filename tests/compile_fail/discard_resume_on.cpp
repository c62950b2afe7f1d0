// Throwing a resume_on() away.
// Refused: nodiscard|unused-result|unused-value
#include <eddy/io/executor.hpp>

eddy::task<int> work();

eddy::task<> use(eddy::executor there) {
#ifdef EDDY_REFUSED
    resume_on(there, work());
#endif
    static_cast<void>(co_await resume_on(there, work()));
}
