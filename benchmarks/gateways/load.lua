-- Each request has an id of its own, and its answer must carry that id and the text that was sent with it.
-- Arguments after `--`: the tool's name, then headers as name and value in turn.
counter, right, wrong = 0, 0, 0 -- global, so that done() can read them
local threads = {}
local tool, headers

function setup(thread)
  table.insert(threads, thread)
end

function init(args)
  tool = args[1]
  headers = { ["Content-Type"] = "application/json", ["Accept"] = "application/json, text/event-stream" }
  for i = 2, #args, 2 do
    headers[args[i]] = args[i + 1]
  end
end

function request()
  counter = counter + 1
  local body = string.format(
    '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%s","arguments":{"text":"hello %d."}}}',
    counter, tool, counter)
  return wrk.format("POST", nil, headers, body)
end

function response(status, _, body)
  local id = string.match(body, '"id"%s*:%s*(%d+)')
  if status == 200 and id and string.find(body, "hello " .. id .. ".", 1, true) then
    right = right + 1
  else
    wrong = wrong + 1
  end
end

function done(summary, latency, _)
  local good, bad = 0, 0
  for _, thread in ipairs(threads) do
    good = good + thread:get("right")
    bad = bad + thread:get("wrong")
  end
  local errors = summary.errors
  io.write(string.format(
    'RESULT {"right": %d, "wrong": %d, "seconds": %.6f, "p50_ms": %.4f, "p99_ms": %.4f, "errors": %d}\n',
    good, bad, summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    errors.connect + errors.read + errors.write + errors.timeout))
end
