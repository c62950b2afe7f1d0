// Rival of run_http.py: fasthttp, with one processor. It echoes a query as JSON, serves files, and
// echoes WebSocket messages.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"

	"github.com/fasthttp/websocket"
	"github.com/valyala/fasthttp"
)

var upgrader = websocket.FastHTTPUpgrader{ReadBufferSize: 16384, WriteBufferSize: 16384}

func echoMessages(peer *websocket.Conn) {
	defer peer.Close()
	for {
		kind, message, err := peer.ReadMessage()
		if err != nil {
			return
		}
		if peer.WriteMessage(kind, message) != nil {
			return
		}
	}
}

func main() {
	port := flag.Int("port", 8080, "")
	root := flag.String("root", ".", "")
	cert := flag.String("cert", "", "")
	key := flag.String("key", "", "")
	flag.Parse()
	runtime.GOMAXPROCS(1)

	files := (&fasthttp.FS{Root: *root, AcceptByteRange: true}).NewRequestHandler()
	server := &fasthttp.Server{Name: "fasthttp", Handler: func(ctx *fasthttp.RequestCtx) {
		switch string(ctx.Path()) {
		case "/echo":
			body, _ := json.Marshal(map[string]string{"hello": string(ctx.QueryArgs().Peek("hello"))})
			ctx.SetContentType("application/json")
			ctx.SetBody(body)
		case "/ws":
			if upgrader.Upgrade(ctx, echoMessages) != nil {
				ctx.SetStatusCode(fasthttp.StatusBadRequest)
			}
		default:
			files(ctx)
		}
	}}
	address := fmt.Sprintf("127.0.0.1:%d", *port)
	var err error
	if *cert != "" {
		err = server.ListenAndServeTLS(address, *cert, *key)
	} else {
		err = server.ListenAndServe(address)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
