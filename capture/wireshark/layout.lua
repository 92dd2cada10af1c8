
-- Positions of the parts of a packet with CRCs: `{ network, at, bth, icrc, vcrc }`, offsets from the first
-- octet, or nil. The bits that the ICRC counts as ones depend on the network header (IBTA Vol 1, 7.8.1, A16, A17).

local BTH_OCTETS, UDP_OCTETS, ROCE_PORT = 12, 8, 4791
local CONGESTION_BITS = 4

local NETWORKS = {
  lrh = { before = "", ones = { [0] = 0xf0 } },
  grh = { ones = { [0] = 0x0f, [1] = 0xff, [2] = 0xff, [3] = 0xff, [7] = 0xff } },
  ipv4 = { ones = { [1] = 0xff, [8] = 0xff, [10] = 0xff, [11] = 0xff }, udp = true },
  ipv6 = { ones = { [0] = 0x0f, [1] = 0xff, [2] = 0xff, [3] = 0xff, [7] = 0xff }, udp = true },
}
local NO_LRH = string.rep("\255", 8)

-- The correct ICRC of a packet.
local function expected_icrc(tvb, layout)
  local network, bth = NETWORKS[layout.network], layout.bth - layout.at
  local ones = { [bth + CONGESTION_BITS] = 0xff }
  for offset, mask in pairs(network.ones) do
    ones[offset] = mask
  end
  if network.udp then
    ones[bth - 2], ones[bth - 1] = 0xff, 0xff
  end
  local covered = tvb:raw(layout.at, layout.icrc - layout.at)
  return crc_of(CRC_32, { network.before or NO_LRH, with_ones(covered, ones) })
end

-- Layout of a packet from LRH to VCRC.
local function infiniband_layout(tvb)
  if tvb:len() < 8 then
    return nil
  end
  local next_header, words = tvb(1, 1):bitfield(6, 2), tvb(4, 2):bitfield(5, 11)
  local layout = { at = 0, vcrc = words * 4 }
  if next_header == 2 then
    layout.network, layout.bth, layout.icrc = "lrh", 8, words * 4 - 4
  elseif next_header == 3 then
    layout.network, layout.at, layout.bth, layout.icrc = "grh", 8, 48, words * 4 - 4
  end
  return layout
end

-- Layout of the UDP datagram from `udp` to `last`.
local function udp_layout(tvb, network, at, udp, last)
  if tvb:len() < udp + UDP_OCTETS or tvb(udp + 2, 2):uint() ~= ROCE_PORT then
    return nil
  end
  return { network = network, at = at, bth = udp + UDP_OCTETS, icrc = last - 4 }
end

local function ipv4_layout(tvb, at)
  if tvb:len() < at + 20 or tvb(at + 9, 1):uint() ~= 17 or tvb(at + 6, 2):bitfield(2, 14) ~= 0 then
    return nil
  end
  local last = at + tvb(at + 2, 2):uint()
  return udp_layout(tvb, "ipv4", at, at + tvb(at, 1):bitfield(4, 4) * 4, last)
end

local function ipv6_layout(tvb, at)
  if tvb:len() < at + 40 or tvb(at + 6, 1):uint() ~= 17 then
    return nil
  end
  return udp_layout(tvb, "ipv6", at, at + 40, at + 40 + tvb(at + 4, 2):uint())
end

local function grh_layout(tvb, at)
  if tvb:len() < at + 40 or tvb(at + 6, 1):uint() ~= 27 then
    return nil
  end
  local last = at + 40 + tvb(at + 4, 2):uint()
  return { network = "grh", at = at, bth = at + 40, icrc = last - 4 }
end

local CARRIERS = { [0x0800] = ipv4_layout, [0x86dd] = ipv6_layout, [0x8915] = grh_layout }
local TAGS = { [0x8100] = 4, [0x88a8] = 4, [CN_TAG] = 4 }

-- Length of the tag with this EtherType at `at`, in octets; nil if it is not a tag.
local function tag_octets(tvb, kind, at)
  if kind == project_ethertype and tvb:len() > at and tvb(at, 1):uint() == RATE_TAG then
    return RATE_TAG_OCTETS
  end
  return TAGS[kind]
end

-- Layout of RoCE in an Ethernet frame, after any tags.
local function ethernet_layout(tvb)
  local at, kind = 14, nil
  while tvb:len() >= at do
    kind = tvb(at - 2, 2):uint()
    local tag = tag_octets(tvb, kind, at)
    if not tag then
      return CARRIERS[kind] and CARRIERS[kind](tvb, at)
    end
    at = at + tag
  end
  return nil
end
