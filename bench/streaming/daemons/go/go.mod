module eddy.test/streaming-daemon

go 1.21
