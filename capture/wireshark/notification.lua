
-- Congestion notification of IEEE 802.1Q, clause 33: the CN-TAG and the CNM.

local CN_TAG, CNM = 0x22e9, 0x22e7

local cn_tag, add_cn_tag = declare("cn_tag", "Congestion notification tag (CN-TAG)", {
  { "flow_id", "Flow ID", ftypes.UINT16, 0, 2, base.DEC },
  { "type", "Type", ftypes.UINT16, 2, 2, base.HEX },
})

local cnm, add_cnm = declare("cnm", "Congestion notification message (CNM)", {
  { "version", "Version", ftypes.UINT16, 0, 2, base.DEC, 0xf000 },
  { "reserved_v", "ReservedV", ftypes.UINT16, 0, 2, base.HEX, 0x0fc0 },
  { "qfb", "Quantized feedback", ftypes.UINT16, 0, 2, base.DEC, 0x003f },
  { "cpid", "CPID", ftypes.UINT64, 2, 8, base.HEX },
  { "qoffset", "cnmQOffset, in 64 octets", ftypes.INT16, 10, 2, base.DEC },
  { "qdelta", "cnmQDelta, in 64 octets", ftypes.INT16, 12, 2, base.DEC },
  { "encap_priority", "Encapsulated priority", ftypes.UINT16, 14, 2, base.DEC, 0xe000 },
  { "encap_dst", "Encapsulated destination", ftypes.ETHER, 16, 6 },
  { "msdu_length", "Encapsulated MSDU length", ftypes.UINT16, 22, 2, base.DEC },
})
local CNM_OCTETS, MSDU_MAX = 24, 64

local cnm_msdu = ProtoField.bytes("pausebed.cnm.msdu", "Encapsulated MSDU")
table.insert(cnm.fields, cnm_msdu)

-- Adds `said` octets of the sampled frame after a header of `octets`; returns false if the frame is shorter.
local function add_sample(tree, field, tvb, octets, said)
  local present = tvb:len() - octets
  if said > 0 and present > 0 then
    tree:add(field, tvb(octets, math.min(said, present)))
  end
  return said <= tvb:reported_len() - octets
end

-- Expert items for a wrong length or version.
local cnm_short = wrong(cnm, "short", "CNM of fewer than 24 octets", "MALFORMED")
local cnm_length = wrong(cnm, "length", "MSDU length beyond the frame or above 64", "MALFORMED")
local cnm_version = wrong(cnm, "version_unknown", "Unknown version: to be discarded", "PROTOCOL")
cnm.experts = { cnm_short, cnm_length, cnm_version }

function cn_tag.dissector(tvb, pinfo, tree)
  local octets = 4
  if tvb:len() < octets then
    return 0
  end
  local flow = tvb(0, 2):uint()
  add_cn_tag(tree:add(cn_tag, tvb(0, octets), "CN-TAG, flow " .. flow), tvb, 0)
  return octets + read_ethertype(tvb(2, 2):uint(), tvb(octets):tvb(), pinfo, tree)
end

function cnm.dissector(tvb, pinfo, tree)
  pinfo.cols.protocol = "CNM"
  if tvb:len() < CNM_OCTETS then
    pinfo.cols.info = "CNM, too short"
    tree:add(cnm, tvb()):add_proto_expert_info(cnm_short)
    return tvb:len()
  end
  local feedback, said = bits.band(tvb(1, 1):uint(), 0x3f), tvb(22, 2):uint()
  pinfo.cols.info = string.format("CNM, feedback %d, CPID %s", feedback, tostring(tvb(2, 8):bytes()))
  local octets = math.min(tvb:len(), CNM_OCTETS + said)
  local branch = tree:add(cnm, tvb(0, octets), "Congestion notification message, feedback " .. feedback)
  add_cnm(branch, tvb, 0)
  if not add_sample(branch, cnm_msdu, tvb, CNM_OCTETS, said) or said > MSDU_MAX then
    branch:add_proto_expert_info(cnm_length)
  end
  if tvb(0, 1):bitfield(0, 4) ~= 0 then
    branch:add_proto_expert_info(cnm_version)
  end
  return octets
end

ethertypes:add(CN_TAG, cn_tag)
ethertypes:add(CNM, cnm)
