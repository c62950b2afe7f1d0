-- Requests of wrk for the JSON echo: those of run_http.py's MESSAGE.
wrk.method = "POST"
wrk.body = '{"name":"eddy","count":7,"tags":["a","b"],"nested":{"is_small":true,"ratio":0.5}}'
