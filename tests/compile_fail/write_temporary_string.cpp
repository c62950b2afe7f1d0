// Writing the text of a temporary; literals and views are as good as ever.
// Refused: deleted
#include <eddy/io/stream.hpp>
#include <eddy/io/task.hpp>

#include <string>
#include <string_view>

eddy::task<> write(eddy::stream to, std::string name) {
#ifdef EDDY_REFUSED
    static_cast<void>(co_await to.write_all("hello " + name));
#endif
    const std::string text = "hello " + name;
    static_cast<void>(co_await to.write_all(text));
    static_cast<void>(co_await to.write_all("hello"));
    static_cast<void>(co_await to.write_all(std::string_view(text).substr(1)));
}
