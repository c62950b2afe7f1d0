// Libraries of functions, which stay until they are deleted: FUNCTION and FCALL.
#pragma once

#include "cache/script/vm.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cache {

/// All libraries of one engine, with the Lua state that they live in. One thread.
class libraries {
public:
    /// The codes of all libraries together; beyond it FUNCTION LOAD is refused.
    static constexpr std::size_t max_text_bytes = std::size_t{32} << 20;
    /// Loading a library may take so long.
    static constexpr std::int64_t max_load_ms = 500;

    explicit libraries(scripts& of);

    struct function {
        std::string name;
        std::string description;
        bool is_described = false;
        int reference = 0;        ///< in the registry
        std::uint32_t flags = 0;  ///< of script_flag
    };
    struct library {
        std::string name;
        std::string code;
        std::vector<std::unique_ptr<function>> functions;
    };

    /// Compiles and runs the code, which registers its functions. The library's name, or empty with
    /// the reason in `why`; nothing has changed then.
    std::string load(std::string_view code, bool replace, std::string& why);
    bool remove(std::string_view name);
    void flush();

    const function* find(std::string_view name) const noexcept;
    const std::vector<std::unique_ptr<library>>& all() const noexcept { return all_; }

    std::size_t size() const noexcept { return all_.size(); }
    std::size_t function_count() const noexcept;
    std::size_t text_bytes() const noexcept;
    std::size_t vm_bytes() const noexcept { return vm_.used_bytes(); }
    vm& machine() noexcept { return vm_; }

    /// Called by redis.register_function(), whose arguments are on the stack.
    int register_function(lua_State* in);

private:
    library* find_library(std::string_view name) noexcept;
    void forget(const library& gone) noexcept;

    scripts& owner_;
    vm vm_;
    std::vector<std::unique_ptr<library>> all_;
    library* loading_ = nullptr;
};

/// redis.register_function().
int register_function(lua_State* in);

}  // namespace eddy::cache
