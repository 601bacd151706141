-- Takes one call from every limit that concerns it, or from none. All times are microseconds of the shared clock,
-- which redis.py explains: nothing here asks for the date.
--
-- KEYS: the clock, then for each limit its bucket and its places
-- ARGV: host ('' if it has no name), its monotonic time, its offset or '', lease, life of a lease, life of the keys in milliseconds,
--       then for each limit its interval, burst and concurrency (0 where it has none)
local host, here, offset = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local lease, lease_life, key_life = ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6])
local DAY, BUSY, ROUNDING = 86400000, 1000000, 0.01

-- What time is it?
local clock = redis.call('HMGET', KEYS[1], 'now', host)
local now, known = tonumber(clock[1]) or 0, tonumber(clock[2])
local mine = offset or known
if mine then now = math.max(now, here + mine) end
redis.call('HSET', KEYS[1], 'now', now)
if host ~= '' and offset and (not known or offset > known) then redis.call('HSET', KEYS[1], host, offset) end
if redis.call('PTTL', KEYS[1]) < key_life + DAY then redis.call('PEXPIRE', KEYS[1], key_life + 30 * DAY) end

-- Who says no, and for how long?
local limits, wait, refusing, busy = (#KEYS - 1) / 2, 0, 0, 0
local full_at = {}
for i = 1, limits do
  local bucket, places = KEYS[2 * i], KEYS[2 * i + 1]
  local interval, burst, most = tonumber(ARGV[3 * i + 4]), tonumber(ARGV[3 * i + 5]), tonumber(ARGV[3 * i + 6])
  if interval > 0 then
    -- No bucket is further from full than its burst: if ever the clock was lost, this one finds back.
    local full = math.min(tonumber(redis.call('GET', bucket)) or 0, now + burst * interval)
    local need = full - now - (burst - 1) * interval
    if need > ROUNDING * interval and need > wait then wait, refusing, busy = need, i, 0 end
    full_at[i] = math.max(full, now) + interval
  end
  if most > 0 then
    redis.call('ZREMRANGEBYSCORE', places, '-inf', now)
    redis.call('ZREMRANGEBYSCORE', places, now + 2 * lease_life, '+inf')
    if wait < BUSY and redis.call('ZCARD', places) >= most then wait, refusing, busy = BUSY, i, 1 end
  end
end

-- Nobody: only now is anything taken.
if refusing == 0 then
  for i = 1, limits do
    local bucket, places = KEYS[2 * i], KEYS[2 * i + 1]
    if full_at[i] then redis.call('SET', bucket, full_at[i], 'PX', key_life) end
    if tonumber(ARGV[3 * i + 6]) > 0 then
      redis.call('ZADD', places, now + lease_life, lease)
      redis.call('PEXPIRE', places, DAY)
    end
  end
end
return {now, math.ceil(wait), refusing, busy, known and 1 or 0}
