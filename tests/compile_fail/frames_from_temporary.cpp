// Frames from memory that is gone before the task runs.
// Refused: no matching function|cannot bind|expects an lvalue
#include <eddy/io/frames.hpp>
#include <eddy/io/task.hpp>

#include <memory_resource>

eddy::task<int> answer();

eddy::task<int> use() {
#ifdef EDDY_REFUSED
    co_return co_await eddy::with_frames(std::pmr::monotonic_buffer_resource(), answer);
#endif
    std::pmr::monotonic_buffer_resource arena;
    co_return co_await eddy::with_frames(arena, answer);
}
