-- Script of a stream runtime: answers each client with the words of its prompt, one at a time.
--
--    eddy create stream llm --handoff unix:///tmp/llm.sock --source lua --lua answer.lua -s
--    python3 hand_over.py 8000 /tmp/llm.sock
--    curl -N 'http://127.0.0.1:8000/?prompt=hello+world&user=7'
--
-- send(text) is an event with that content, event(name, text) an event of another name, and
-- sleep(milliseconds) a pause. The answer ends when handle() returns.

-- All streams share what is defined here, since the runtime started.
local answered = 0

function handle(request)
    answered = answered + 1
    event("number", tostring(answered))
    if request.prompt == "" then
        return send("Say something, user " .. request.user_id .. ".")
    end
    for word in request.prompt:gmatch("%S+") do
        send(word .. " ")
        sleep(50)
    end
end
