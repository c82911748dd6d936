-- Times and lengths are microseconds as decimal texts: a number of Lua is exact
-- only up to 2^53, which as a time is the year 2255.

-- The store's time: a test's clock or the server's.
local function now(clock)
  if clock == '' then
    local time = redis.call('TIME')
    clock = string.format('%s%06d', time[1], time[2])
  end
  return clock
end

-- The sum of two whole numbers that are not negative; nothing if it is more than
-- 64 bits hold. What a number of Lua cannot hold is added in two halves.
local function plus(a, b)
  local sum = tonumber(a) + tonumber(b)
  if sum < 9007199254740992 then
    return string.format('%.0f', sum)
  end
  local function halves(number)
    local digits = string.rep('0', 19 - #number) .. number
    return tonumber(string.sub(digits, 1, 10)), tonumber(string.sub(digits, 11))
  end
  local a_high, a_low = halves(a)
  local b_high, b_low = halves(b)
  local high, low = a_high + b_high, a_low + b_low
  if low >= 1000000000 then
    high, low = high + 1, low - 1000000000
  end
  if high > 9223372036 or (high == 9223372036 and low > 854775807) then
    return nil
  end
  return string.format('%.0f%09.0f', high, low)
end

local function lease_end(time, lease)
  return plus(time, lease) or '9223372036854775807'
end
