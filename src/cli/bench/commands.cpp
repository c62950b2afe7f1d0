// `eddy bench`: chooses the load generator.
#include "cli/bench/commands.hpp"

#include "cli/commands/commands.hpp"

namespace eddy::cli {

command bench_command() {
    command c;
    c.name = "bench";
    c.operands = "resp|http|ws|handoff|shm";
    c.summary =
        "measure a server: a cache, an HTTP server, WebSockets, a stream runtime, shared memory";
    c.children.push_back(bench::resp_command());
    c.children.push_back(bench::http_command());
    c.children.push_back(bench::ws_command());
    c.children.push_back(bench::handoff_command());
    c.children.push_back(bench::shm_command());
    c.examples = {
        {"eddy bench resp -p 6379", ""},
        {"eddy bench http http://127.0.0.1:8080/", ""},
        {"eddy bench ws ws://127.0.0.1:8080/echo --size 1024", ""},
        {"eddy bench handoff --socket /run/eddy/llm.sock -c 1000", ""},
        {"eddy bench shm --reps 500000", ""},
    };
    return c;
}

}  // namespace eddy::cli
