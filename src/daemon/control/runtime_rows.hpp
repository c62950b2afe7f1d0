// Lists of many runtimes as rows of chosen members, written without a tree of JSON values: a list
// of 10,000 takes some milliseconds.
#pragma once

#include <eddy/io/timer.hpp>

#include "base/problem.hpp"
#include "daemon/runtimes/managed_runtime.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace eddy {
class json_writer;
}

namespace eddy::daemon {

/// A member of show_runtime().
struct runtime_field {
    std::string_view name;
    void (*write)(json_writer& to, const managed_runtime& which, time_point now);
    bool is_vital = false;  ///< a part of runtime_brief: as of the last refresh
};

/// Fields by their names, "name,type,port". Refuses (400) an unknown one, naming all, an empty list
/// and a name that occurs twice.
outcome<std::vector<const runtime_field*>> parse_fields(std::string_view listed);

/// Answer of a list: {"fields": [NAME...], "rows": [[VALUE...]...]}, in the fields' order. A member
/// that a runtime lacks is null.
class runtime_rows {
public:
    runtime_rows(std::vector<const runtime_field*> fields, time_point now);
    ~runtime_rows();

    void add(const managed_runtime& which);
    std::string take();

private:
    const std::vector<const runtime_field*> fields_;
    const time_point now_;
    const std::unique_ptr<json_writer> to_;
};

}  // namespace eddy::daemon
