// Posting a lambda that is a coroutine: its captures would die before the task that it makes.
// Refused: no matching
#include <eddy/io/executor.hpp>

#include <string>

eddy::task<> say(std::string what);

void use(eddy::executor there, std::string name) {
#ifdef EDDY_REFUSED
    static_cast<void>(there.post([name]() -> eddy::task<> { co_await say(name); }));
#endif
    static_cast<void>(there.post(say(name)));
    static_cast<void>(there.post([name] { static_cast<void>(name.size()); }));
}
