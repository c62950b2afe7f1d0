// The engine over a folder, from its parts.
#include "cluster/folder/folder_membership.hpp"

#include "cluster/folder/folder_store.hpp"

#include <memory>
#include <utility>

namespace eddy::cluster {

folder_membership::folder_membership(std::string folder, observer& reports, folder_options options)
    : beat_membership(std::make_unique<folder_store>(std::move(folder), std::move(options.trusted)),
                      reports, options.rules) {}

}  // namespace eddy::cluster
