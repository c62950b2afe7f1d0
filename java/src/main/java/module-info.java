/** Sockets over shared memory between processes of one machine. */
module io.eddy.shm {
    exports io.eddy.shm;
}
