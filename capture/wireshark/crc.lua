-- pausebed for Wireshark: congestion notification, the cables and frames of pausebed, and CRC verdicts.
-- Installed and removed by `pausebed wireshark`. MIT or Apache-2.0, like pausebed.

-- CRCs of InfiniBand and RoCE. Both are reflected, start with all ones, end with a complement and are sent
-- least significant octet first (IBTA Vol 1, 7.8), so both use the same table-driven loop.

local bits = bit32 or bit
local unpack = unpack or table.unpack

local function crc_table(polynomial)
  local entries = {}
  for octet = 0, 255 do
    local register = octet
    for _ = 1, 8 do
      local taps = bits.band(register, 1) == 1 and polynomial or 0
      register = bits.bxor(bits.rshift(register, 1), taps)
    end
    entries[octet] = register
  end
  return entries
end

local CRC_32 = { octets = 4, ones = 0xffffffff, entries = crc_table(0xedb88320) }
local CRC_16 = { octets = 2, ones = 0xffff, entries = crc_table(0xd008) }

-- The CRC over all `parts`, as octets in transmission order.
local function crc_of(kind, parts)
  local register = kind.ones
  for _, part in ipairs(parts) do
    for at = 1, #part do
      local entry = kind.entries[bits.band(bits.bxor(register, part:byte(at)), 0xff)]
      register = bits.bxor(bits.rshift(register, 8), entry)
    end
  end
  register = bits.bxor(register, kind.ones)
  local octets = {}
  for place = 1, kind.octets do
    octets[place] = string.char(bits.band(bits.rshift(register, 8 * (place - 1)), 0xff))
  end
  return table.concat(octets)
end

-- `octets` with some bits set; `masks` gives the bits by offset.
local function with_ones(octets, masks)
  local last = 0
  for offset in pairs(masks) do
    last = math.max(last, offset)
  end
  local head = { octets:byte(1, last + 1) }
  for offset, mask in pairs(masks) do
    head[offset + 1] = bits.bor(head[offset + 1] or 0, mask)
  end
  return string.char(unpack(head)) .. octets:sub(last + 2)
end
