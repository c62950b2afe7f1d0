// Opening of a socket bank: the io-backend of the loop chooses the implementation.
#include "io/socket_bank/socket_bank.hpp"

#include "io/files/file_access.hpp"

#include <cerrno>
#include <memory>

namespace eddy {

result<std::unique_ptr<socket_bank>> io_backend::open_socket_bank(const socket_bank_options&,
                                                                  bank_observer&) {
    return fail(errc::unsupported);
}

result<std::unique_ptr<socket_bank>> socket_bank::open(const socket_bank_options& options,
                                                       observer& to) {
    if (options.capacity == 0 || options.capacity > socket_bank_options::max_capacity)
        return fail_errno(EINVAL);
    return file_access::io_backend_of(loop::current()).open_socket_bank(options, to);
}

}  // namespace eddy
