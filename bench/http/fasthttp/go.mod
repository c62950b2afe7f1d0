module eddy.test/http

go 1.25.0

require (
	github.com/fasthttp/websocket v1.5.12
	github.com/valyala/fasthttp v1.72.0
)

require (
	github.com/andybalholm/brotli v1.2.1 // indirect
	github.com/klauspost/compress v1.18.6 // indirect
	github.com/savsgio/gotils v0.0.0-20240704082632-aef3928b8a38 // indirect
	github.com/valyala/bytebufferpool v1.0.0 // indirect
	golang.org/x/net v0.56.0 // indirect
)
