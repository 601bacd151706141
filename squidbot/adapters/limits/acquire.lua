-- Takes calls one by one, each from every limit that concerns it, or from none. All times are microseconds of the shared
-- clock, which redis.py explains: nothing here asks for the date.
--
-- KEYS: the clock, then for each limit its bucket and its places
-- ARGV: host ('' if it has no name), its monotonic time, its offset or '', life of a lease, life of the keys in milliseconds,
--       then for each limit its interval, burst and concurrency (0 where it has none), then for each call its lease
-- Says: the time, whether the host was known, then for each call how long to wait, who refuses (0: nobody), whether for places
local host, here, offset = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local lease_life, key_life = tonumber(ARGV[4]), tonumber(ARGV[5])
local DAY, BUSY, ROUNDING = 86400000, 1000000, 0.01
local limits = (#KEYS - 1) / 2

-- What time is it?
local clock = redis.call('HMGET', KEYS[1], 'now', host)
local now, known = tonumber(clock[1]) or 0, tonumber(clock[2])
local mine = offset or known
if mine then now = math.max(now, here + mine) end
redis.call('HSET', KEYS[1], 'now', now)
if host ~= '' and offset and (not known or offset > known) then redis.call('HSET', KEYS[1], host, offset) end
if redis.call('PTTL', KEYS[1]) < key_life + DAY then redis.call('PEXPIRE', KEYS[1], key_life + 30 * DAY) end

-- What is there?
local full, taken = {}, {}
for i = 1, limits do
  local bucket, places = KEYS[2 * i], KEYS[2 * i + 1]
  local interval, burst, most = tonumber(ARGV[3 * i + 3]), tonumber(ARGV[3 * i + 4]), tonumber(ARGV[3 * i + 5])
  -- No bucket is further from full than its burst: if ever the clock was lost, this one finds back.
  if interval > 0 then full[i] = math.min(tonumber(redis.call('GET', bucket)) or 0, now + burst * interval) end
  if most > 0 then
    redis.call('ZREMRANGEBYSCORE', places, '-inf', now)
    redis.call('ZREMRANGEBYSCORE', places, now + 2 * lease_life, '+inf')
    taken[i] = redis.call('ZCARD', places)
  end
end

local said, passed = {now, known and 1 or 0}, false
for call = 3 * limits + 6, #ARGV do
  -- Who says no, and for how long?
  local wait, refusing, busy = 0, 0, 0
  for i = 1, limits do
    local interval, burst, most = tonumber(ARGV[3 * i + 3]), tonumber(ARGV[3 * i + 4]), tonumber(ARGV[3 * i + 5])
    if full[i] then
      local need = full[i] - now - (burst - 1) * interval
      if need > ROUNDING * interval and need > wait then wait, refusing, busy = need, i, 0 end
    end
    if taken[i] and wait < BUSY and taken[i] >= most then wait, refusing, busy = BUSY, i, 1 end
  end
  -- Nobody: only now is anything taken.
  if refusing == 0 then
    passed = true
    for i = 1, limits do
      if full[i] then full[i] = math.max(full[i], now) + tonumber(ARGV[3 * i + 3]) end
      if taken[i] then
        taken[i] = taken[i] + 1
        redis.call('ZADD', KEYS[2 * i + 1], now + lease_life, ARGV[call])
      end
    end
  end
  said[#said + 1], said[#said + 2], said[#said + 3] = math.ceil(wait), refusing, busy
end

if passed then
  for i = 1, limits do
    if full[i] then redis.call('SET', KEYS[2 * i], full[i], 'PX', key_life) end
    if taken[i] then redis.call('PEXPIRE', KEYS[2 * i + 1], DAY) end
  end
end
return said
