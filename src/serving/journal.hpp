// Journal: lines about what happens to a server.
#pragma once

#include <string_view>

namespace eddy::serving {

/// Where a server reports what happens to it: for a runtime, the lines of `eddy logs NAME`. Any
/// thread.
class journal {
public:
    virtual void write(std::string_view line) = 0;

protected:
    ~journal() = default;
};

}  // namespace eddy::serving
