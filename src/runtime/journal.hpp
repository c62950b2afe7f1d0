// Journal: the lines of `eddy logs NAME`.
#pragma once

#include <string_view>

namespace eddy::runtime {

/// Where a runtime reports what happens to it; lines appear in `eddy logs NAME`. Any thread.
class journal {
public:
    virtual void write(std::string_view line) = 0;

protected:
    ~journal() = default;
};

}  // namespace eddy::runtime
