// Modules of scripts: require() of files in folders that the operator has named.
#pragma once

#include "script/library.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::script {

/// Bytes of a module's file.
inline constexpr std::size_t max_module_bytes = std::size_t{4} << 20;

/// Files of modules. It must outlive the host. One loop's thread.
class modules {
public:
    /// Folders, which are searched in order for NAME.lua and NAME/init.lua.
    explicit modules(std::vector<std::string> folders) noexcept : folders_(std::move(folders)) {}

    /// Table `modules`, for module_prelude().
    library functions() noexcept;

    const std::vector<std::string>& folders() const noexcept { return folders_; }

private:
    std::vector<std::string> folders_;
};

/// Defines require() and `package`. Behind modules::functions() and the other preludes, whose
/// tables require() returns by their names.
std::string_view module_prelude() noexcept;

}  // namespace eddy::script
