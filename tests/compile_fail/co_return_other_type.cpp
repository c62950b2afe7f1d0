// A co_return of a value that makes no value of the task: the error is at that line.
// Refused: co_return_other_type\.cpp:[0-9]+:[0-9]+: error: .*return_value
#include <eddy/io/task.hpp>

eddy::task<int> work() {
#ifdef EDDY_REFUSED
    co_return "text";
#endif
    co_return 1;
}
