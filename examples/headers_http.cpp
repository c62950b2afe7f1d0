// Code in the comments of the headers of http and of the JSON writer, so that the compiler and
// tools/tidy.py see that it is right. Nothing of it runs.
#include <eddy/http/compression.hpp>
#include <eddy/http/router.hpp>
#include <eddy/io/task.hpp>
#include <eddy/wire/json.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace eddy;

task<http::response> show_user(http::request& request);
task<http::response> add_user(http::request& request);
task<http::response> send_file(http::request& request);
task<http::response> log_requests(http::request& request, http::chain rest);

inline http::router http_router() {
    http::router api;
    api.get("/users/{id:int}", show_user)
        .post("/users", add_user)
        .get("/files/{path...}", send_file)
        .use(log_requests);
    return api;
}

inline http::router http_codings() {
    http::router api;
    api.use(http::compress()).use(http::decompress());
    return api;
}

inline std::string wire_json(std::string_view name, const std::vector<int>& ids) {
    json_writer out;
    out.begin_object().member("name", name).key("ids").begin_array();
    for (const int id : ids) out.value(id);
    out.end_array().end_object();
    return out.take();
}

int main() { return 0; }
