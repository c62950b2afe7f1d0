// Code in the comments of <eddy/http/json.hpp>, so that the compiler and tools/tidy.py see that it
// is right. Nothing of it runs.
#include <eddy/http/json.hpp>
#include <eddy/http/request.hpp>
#include <eddy/http/response.hpp>
#include <eddy/http/templates.hpp>
#include <eddy/io/task.hpp>

using namespace eddy;

inline task<http::response> http_json(http::request& request) {
    auto note = co_await http::read_json(request);
    if (!note) co_return http::response();
    (*note)["seen"] = true;
    co_return http::json(*note);
}

inline task<http::response> http_json_page(http::templates& pages, http::request& request) {
    auto note = co_await http::read_json(request);
    if (!note) co_return http::response();
    co_return pages.render("note", http::template_data_of(*note));
}

int main() { return 0; }
