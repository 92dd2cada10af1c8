
-- Headers as tables with one row for each field, `{ key, title, type, first octet, octets, base, mask, names }`.

-- Declares a protocol whose filter names begin with `pausebed.`; the second result adds its header, which
-- begins at `at`, to a tree.
local function declare(name, title, rows)
  local proto = Proto("pausebed." .. name, title)
  for place, row in ipairs(rows) do
    local key, label, kind, _, _, base, mask, names = unpack(row, 1, 8)
    local filter = "pausebed." .. name .. "." .. key
    proto.fields[place] = ProtoField.new(label, filter, kind, names, base, mask)
  end
  local function add(tree, tvb, at)
    for place, row in ipairs(rows) do
      tree:add(proto.fields[place], tvb(at + row[4], row[5]))
    end
  end
  return proto, add
end

-- Declares an expert item for an error; `group` is one of Wireshark's expert groups.
local function wrong(proto, key, title, group)
  local name = proto.name:lower() .. "." .. key
  return ProtoExpert.new(name, title, expert.group[group], expert.severity.ERROR)
end

local inside = Proto("pausebed.inside", "What a tag or a cable carries")
local inside_malformed = wrong(inside, "malformed", "Malformed, or not captured whole", "MALFORMED")
inside.experts = { inside_malformed }

-- Calls another dissector on `tvb`. If it reports malformed data, the tree shows an expert item.
local function read_on(read, tvb, pinfo, tree)
  local good, octets = pcall(read, tvb, pinfo, tree)
  if good then
    return octets
  end
  tree:add(inside, tvb()):add_proto_expert_info(inside_malformed)
  return tvb:len()
end

local ethertypes = DissectorTable.get("ethertype")

-- Calls the dissector of this EtherType on `tvb`.
local function read_ethertype(kind, tvb, pinfo, tree)
  local function try(...)
    return ethertypes:try(kind, ...)
  end
  return read_on(try, tvb, pinfo, tree)
end
