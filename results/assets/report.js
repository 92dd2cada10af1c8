// The cursor of a report: time under the pointer, on the slider and on the keys; zoom, play, names.
// The page can be read without it. It fetches nothing. It follows page.js.
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const LEVELS = 13, HELD = 0.1, NONE = 65535;
  const meta = JSON.parse($("pb-meta").textContent);
  const sides = new Map(meta.sides.map((side) => [side.side, side]));
  const series = new Map();
  let values = new Uint16Array(0);
  let time = meta.cursor, zoom = [0, meta.length], pin = -1, playing = 0;

  // ---- values

  async function unpack() {
    const octets = Uint8Array.from(atob($("pb-cols").textContent), (c) => c.charCodeAt(0));
    const stream = new Blob([octets]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    values = new Uint16Array(await new Response(stream).arrayBuffer());
    let at = 0;
    for (const [key, low, step, n] of meta.columns) {
      series.set(key, { at, low, step, n });
      at += n;
    }
  }

  function value(key, bin) {
    const s = series.get(key);
    if (!s || bin < 0 || bin >= s.n) return NaN;
    const q = values[s.at + bin];
    return q === NONE ? NaN : s.low + q * s.step;
  }

  const binAt = (number, t) => {
    const side = sides.get(number);
    const bin = side ? Math.floor(t / side.dt + 1e-9) : -1;
    return side && bin < side.bins ? Math.max(bin, 0) : -1;
  };

  // ---- words

  const tau = (t) => (t < 100 && Math.abs(t - Math.round(t)) > 0.05 ? t.toFixed(1) : grouped(t)) + " τ";
  function seconds(ps) {
    for (const [unit, size] of [["s", 1e12], ["ms", 1e9], ["µs", 1e6], ["ns", 1e3], ["ps", 1]]) {
      if (ps >= size) {
        const v = ps / size;
        return v.toFixed(v >= 100 ? 0 : v >= 10 ? 1 : 2) + " " + unit;
      }
    }
    return "0 s";
  }
  const phaseAt = (t) => meta.phases.filter((p) => p[0] <= t).pop();
  const percent = (v) => (Number.isFinite(v) ? (100 * v).toFixed(0) + " %" : "–");

  // ---- values at the cursor

  const reads = all("[data-k]").map((el) => ({
    el, key: el.dataset.k, side: Number(el.dataset.k[0]), digits: Number(el.dataset.d), unit: el.dataset.u || "",
  }));
  const cursors = all(".cursor");
  const first = meta.cursor;
  const panes = all("svg.fabric").map((svg) => ({
    svg, side: Number(svg.id.slice(1)),
    ways: all("path[data-e]", svg).map((el) => ({ el, output: Number(el.dataset.e), level: -1 })),
    dots: all("circle[data-s]", svg).map((el) => ({ el, output: el.dataset.s, level: -1 })),
    bars: all("rect[data-x]", svg).map((el) => ({ el, node: el.dataset.x })),
    ranges: all("path[data-v]", svg).map((el) => ({ el, node: el.dataset.v, y: el.getAttribute("d").split(/[ H]/)[1] })),
    roots: all("g.root", svg).map((el) => ({ el, outputs: el.dataset.r.split(" ").map(Number) })),
  }));

  function level(share) {
    if (!(share >= 0.03)) return 0;
    return Math.max(1, Math.min(LEVELS - 1, Math.ceil(share * (LEVELS - 1))));
  }

  function paintPane(pane) {
    const bin = binAt(pane.side, time);
    for (const list of [pane.ways, pane.dots]) {
      for (const item of list) {
        const now = level(value(pane.side + ".h" + item.output, bin));
        if (now !== item.level) {
          item.el.classList.remove("w" + item.level);
          if (item.level < 0) item.el.classList.remove(...[...item.el.classList].filter((c) => /^w\d+$/.test(c)));
          item.el.classList.add("w" + now);
          item.level = now;
        }
      }
    }
    const wide = (node) => Math.min(value(pane.side + ".x" + node, bin) || 0, 1.06) * 78;
    for (const bar of pane.bars) bar.el.setAttribute("width", wide(bar.node).toFixed(1));
    for (const { el, node, y } of pane.ranges) {
      el.setAttribute("d", `M${(514 + wide(node + "a")).toFixed(1)} ${y}H${(514 + wide(node + "z")).toFixed(1)}`);
    }
    const side = sides.get(pane.side);
    for (const ring of pane.roots) {
      const on = side.roots.some(([o, from, to]) => ring.outputs.includes(o) && bin >= from && bin < to);
      ring.el.toggleAttribute("hidden", !on);
    }
  }

  function paint() {
    const bins = new Map([...sides.keys()].map((number) => [number, binAt(number, time)]));
    for (const read of reads) {
      const v = value(read.key, bins.get(read.side) ?? -1);
      read.el.textContent = Number.isFinite(v) ? v.toFixed(read.digits) + read.unit : "–";
    }
    for (const cursor of cursors) cursor.setAttribute("transform", `translate(${time - first} 0)`);
    panes.forEach(paintPane);
    const slider = $("time-slider");
    slider.value = String(Math.round((time / meta.length) * Number(slider.max)));
    const phase = phaseAt(time);
    slider.setAttribute("aria-valuetext", grouped(time) + " MTU times" + (phase ? ", " + phase[2] : ""));
    $("now").textContent = "t = " + tau(time);
    $("then").textContent = seconds(time * meta.tau_ps) + (phase ? ", " + phase[2] : "");
    tell();
  }

  let asked = false;
  function go(t) {
    time = Math.max(0, Math.min(meta.length, t));
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => { asked = false; paint(); remember(); });
  }

  // ---- the slider moves by bins of the finer run

  const step = () => Math.min(...meta.sides.map((side) => side.dt));
  const toBin = (t) => (Math.floor(t / step()) + 0.5) * step();

  // ---- zoom

  function draw(tag, parent, attributes, text) {
    const el = document.createElementNS(SVG, tag);
    for (const [name, v] of Object.entries(attributes)) el.setAttribute(name, v);
    if (text !== undefined) el.textContent = text;
    parent.append(el);
    return el;
  }

  function ticks(low, high, about) {
    const rough = (high - low) / about, power = 10 ** Math.floor(Math.log10(rough));
    const size = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough * 0.999);
    const found = [];
    for (let n = Math.ceil(low / size - 1e-9); n * size <= high + size * 1e-9; n++) found.push(n * size);
    return found;
  }

  function setZoom(from, to) {
    const least = Math.min(meta.length, 4 * step());
    if (to - from < least) [from, to] = [(from + to - least) / 2, (from + to + least) / 2];
    zoom = [Math.max(0, from), Math.min(meta.length, to)];
    for (const svg of all("svg.t")) {
      const [, y, , h] = svg.getAttribute("viewBox").split(" ");
      svg.setAttribute("viewBox", `${zoom[0]} ${y} ${zoom[1] - zoom[0]} ${h}`);
    }
    const axis = $("axis"), y = Number(axis.dataset.y);
    const x = (t) => 54 + ((t - zoom[0]) / (zoom[1] - zoom[0])) * 946;
    axis.replaceChildren();
    for (const t of ticks(zoom[0], zoom[1], 10)) {
      draw("path", axis, { class: "zero", d: `M${x(t).toFixed(1)} ${y}v5` });
      draw("text", axis, { x: x(t).toFixed(1), y: y + 19, "text-anchor": "middle" }, grouped(t));
    }
    for (const label of all("text.when")) {
      const a = Math.max(Number(label.dataset.a), zoom[0]), b = Math.min(Number(label.dataset.b), zoom[1]);
      const wide = ((b - a) / (zoom[1] - zoom[0])) * 946;
      label.style.display = wide < 24 + 5 * label.textContent.length ? "none" : "";
      if (b > a) label.setAttribute("x", x((a + b) / 2).toFixed(1));
    }
    remember();
  }

  function timeOf(event, svg) {
    const box = svg.getBoundingClientRect();
    return zoom[0] + Math.max(0, Math.min(1, (event.clientX - box.left) / box.width)) * (zoom[1] - zoom[0]);
  }

  const chosen = $("chosen");
  for (const svg of all("svg.pointer")) {
    let begin = null;
    svg.addEventListener("pointerdown", (event) => {
      begin = { x: event.clientX, t: timeOf(event, svg) };
      if (event.pointerType === "mouse") svg.setPointerCapture(event.pointerId);
    });
    svg.addEventListener("pointermove", (event) => {
      const t = timeOf(event, svg);
      if (begin && Math.abs(event.clientX - begin.x) > 6 && event.pointerType === "mouse") {
        chosen.setAttribute("x", Math.min(begin.t, t));
        chosen.setAttribute("width", Math.abs(t - begin.t));
      } else if (!playing) go(t);
    });
    const end = (event) => {
      if (begin && Number(chosen.getAttribute("width")) > 0) setZoom(Math.min(begin.t, timeOf(event, svg)), Math.max(begin.t, timeOf(event, svg)));
      begin = null;
      chosen.setAttribute("width", 0);
    };
    svg.addEventListener("pointerup", end);
    svg.addEventListener("pointercancel", () => { begin = null; chosen.setAttribute("width", 0); });
    svg.addEventListener("dblclick", () => setZoom(0, meta.length));
  }
  for (const svg of all(".multiples svg.t, svg.heat")) {
    svg.addEventListener("pointermove", (event) => { if (!playing) go(timeOf(event, svg)); });
  }
  for (const svg of all("svg.heat")) {
    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect(), rows = meta.ports.length;
      const row = Math.floor((event.clientY - box.top) / box.height * rows);
      const [node, name] = meta.ports[Math.max(0, Math.min(rows - 1, row))];
      const said = meta.sides.map((side) => {
        const v = value(side.side + ".x" + node, binAt(side.side, time));
        return `${Number.isFinite(v) ? v.toFixed(2) : "–"} with ${side.name}`;
      });
      $("cell").textContent = `${name} received ${said.join(", ")} at ${tau(time)}`;
    });
  }

  // ---- names of lines

  const nameOf = (output) => meta.outputs[output].slice(0, 2).join(" → ");
  let named = -1;
  function tell() {
    if (named < 0) return;
    const shares = meta.sides.map((side) =>
      `${percent(value(side.side + ".h" + named, binAt(side.side, time)))} with ${side.name}`);
    $("named").textContent = `${nameOf(named)} waits ${shares.join(", ")}`;
  }
  function name(output) {
    named = output;
    for (const pane of panes) {
      for (const way of pane.ways) {
        way.el.classList.toggle("dim", output >= 0 && way.output !== output);
        way.el.classList.toggle("named", way.output === output);
      }
    }
    tell();
  }
  for (const pane of panes) {
    for (const way of pane.ways) {
      way.el.addEventListener("pointerenter", () => name(way.output));
      way.el.addEventListener("click", () => setPin(pin === way.output ? -1 : way.output));
    }
    pane.svg.addEventListener("pointerleave", () => name(pin));
    pane.svg.parentElement.addEventListener("keydown", (event) => {
      const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (by) {
        event.preventDefault();
        event.stopPropagation();
        const outputs = pane.ways.map((way) => way.output).sort((a, b) => a - b);
        const at = outputs.indexOf(named);
        name(outputs[(at + by + outputs.length) % outputs.length]);
      } else if (event.key === "Enter" && named >= 0) setPin(pin === named ? -1 : named);
    });
  }

  // ---- a pinned line: its hold and queue below the figure

  function setPin(output) {
    pin = output;
    const place = $("pinned");
    place.replaceChildren();
    if (output < 0) { name(-1); remember(); return; }
    const heading = document.createElement("h3");
    heading.textContent = `${nameOf(output)}: share of time held`;
    const svg = draw("svg", place, { viewBox: "0 0 1210 112", role: "img" });
    svg.setAttribute("aria-label", heading.textContent);
    place.prepend(heading);
    const drawn = (key, top, y, height, words) => {
      draw("text", svg, { x: 1012, y: y + 12 }, words);
      draw("path", svg, { class: "zero", d: `M54 ${y + height}H1000` });
      const inner = draw("svg", svg, {
        class: "t", x: 54, y, width: 946, height, preserveAspectRatio: "none",
        viewBox: `${zoom[0]} -1040 ${zoom[1] - zoom[0]} 1070`,
      });
      for (const side of meta.sides) {
        let d = "";
        for (let bin = 0; bin < side.bins; bin++) {
          const v = value(`${side.side}.${key}${output}`, bin);
          if (Number.isFinite(v)) d += `${d ? "L" : "M"}${(bin + 0.5) * side.dt} ${-1000 * v / top}`;
        }
        const group = draw("g", inner, { class: "small " + (side.side ? "run" : "base") });
        draw("path", group, { class: "l", d });
      }
    };
    drawn("h", 1, 4, 46, "held, 0 to 100 %");
    let top = 0;
    for (const side of meta.sides) {
      for (let bin = 0; bin < side.bins; bin++) top = Math.max(top, value(`${side.side}.q${output}`, bin) || 0);
    }
    if (top > 0) drawn("q", top, 60, 46, `queue, up to ${(top / 1024).toFixed(1)} KiB`);
    name(output);
    remember();
  }

  // Moves to the bin before or after the cursor in which the hold of the pinned line begins or ends.
  function goToChange(by) {
    const side = sides.get(1) || sides.get(0);
    const isHeld = (bin) => value(`${side.side}.h${pin}`, bin) >= HELD;
    for (let bin = Math.min(Math.floor(time / side.dt), side.bins) + by; bin >= 0 && bin < side.bins; bin += by) {
      if (isHeld(bin) !== isHeld(bin - 1)) return go((bin + 0.5) * side.dt);
    }
  }

  // ---- play, keys, theme, fragment

  const still = matchMedia("(prefers-reduced-motion: reduce)");
  function play(on) {
    clearInterval(playing);
    playing = 0;
    if (on) {
      playing = setInterval(() => {
        if (document.hidden) return play(false);
        const next = toBin(time) + step() * (still.matches ? 10 : 1);
        if (next > zoom[1]) go(toBin(zoom[0])); else go(next);
      }, still.matches ? 1000 : 70);
    }
    $("play").textContent = on ? "❚❚" : "▶";
    $("play").setAttribute("aria-label", on ? "Pause" : "Play");
  }
  $("play").addEventListener("click", () => play(!playing));
  $("time-slider").addEventListener("input", (event) => {
    play(false);
    go(toBin((Number(event.target.value) / Math.max(1, Number(event.target.max))) * meta.length * 0.99999));
  });

  document.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const on = event.target;
    if (on === opacity) return;
    const by = step() * (event.shiftKey ? 10 : 1);
    const keys = {
      ArrowRight: () => go(toBin(time) + by),
      ArrowLeft: () => go(toBin(time) - by),
      Home: () => go(toBin(0)),
      End: () => go(meta.length - step() / 2),
      " ": () => play(!playing),
      Escape: () => { setZoom(0, meta.length); if (pin >= 0) setPin(-1); },
      d: theme.flip,
      "[": () => { if (pin >= 0) goToChange(-1); },
      "]": () => { if (pin >= 0) goToChange(1); },
    };
    const act = keys[event.key];
    if (!act || (event.key === " " && on instanceof Element && on.closest("button, summary, a"))) return;
    event.preventDefault();
    act();
  });

  let written = 0;
  function remember() {
    clearTimeout(written);
    written = setTimeout(() => {
      const parts = ["t=" + Math.round(time)];
      if (pin >= 0) parts.push("pin=" + encodeURIComponent(meta.outputs[pin][0]));
      if (zoom[0] > 0 || zoom[1] < meta.length) parts.push(`zoom=${Math.round(zoom[0])}-${Math.round(zoom[1])}`);
      if (root.dataset.theme) parts.push("theme=" + root.dataset.theme);
      try { history.replaceState(null, "", "#" + parts.join("&")); } catch { /* some viewers forbid it */ }
    }, 250);
  }
  function recall() {
    const said = new Map(location.hash.slice(1).split("&").map((part) => part.split("=")));
    if (["dark", "light"].includes(said.get("theme"))) theme.set(said.get("theme"));
    const span = /^(\d+)-(\d+)$/.exec(said.get("zoom") || "");
    if (span) setZoom(Number(span[1]), Number(span[2]));
    if (said.has("pin")) {
      const wanted = decodeURIComponent(said.get("pin"));
      const output = meta.outputs.findIndex(([port]) => port === wanted);
      if (output >= 0) setPin(output);
    }
    if (/^\d+(\.\d+)?$/.test(said.get("t") || "")) go(Number(said.get("t")));
  }
  addEventListener("hashchange", recall);

  // ---- a figure as a file: the picture in the light theme; its numbers, if the page has them

  function save(name, text, type) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  // The style has no variables: drawing programs do not know them.
  function ink() {
    const rules = $("ink").textContent;
    const colours = new Map([...rules.matchAll(/--([\w-]+):([^;}]+)/g)].map((found) => [found[1], found[2]]));
    return rules.replace(/:root\{[^}]*\}/, "").replace(/var\(--([\w-]+)\)/g, (_, role) => colours.get(role));
  }

  function copyOf(svg, place) {
    const copy = svg.cloneNode(true);
    for (const gone of all("[hidden], .catch, #chosen, .overlay", copy)) gone.remove();
    for (const use of all("use", copy)) use.replaceWith($(use.getAttribute("href").slice(1)).cloneNode());
    for (const el of [copy, ...all("[id]", copy)]) el.removeAttribute("id");
    for (const name of ["role", "aria-label"]) copy.removeAttribute(name);
    for (const [name, v] of Object.entries(place)) copy.setAttribute(name, v);
    return copy;
  }

  // The pictures of a part of the page, eight small ones or two in a row, each below its title.
  function pictureOf(part) {
    const LINE = 15, GAP = 16;
    const pieces = all("svg[role=img]", part).filter((svg) => !svg.closest("#pinned, .reference, #heat")).map((svg) => {
      const [, , width, height] = svg.classList.contains("t") ? [0, 0, 138, 46] : svg.getAttribute("viewBox").split(" ").map(Number);
      const most = Math.floor(width / 6.3), around = svg.closest("figure, .two > .pane");
      const words = around ? all("h3, figcaption, .caption", around).flatMap((el) =>
        el.textContent.replace(/\s+/g, " ").trim().match(new RegExp(`\\S{${most}}|\\S.{0,${most - 1}}(?!\\S)`, "gu")) || []) : [];
      return { svg, width, height, words };
    });
    const whole = document.createElementNS(SVG, "svg");
    draw("title", whole, {}, part.querySelector("h2, h3").textContent);
    draw("style", whole, {}, ink());
    const paper = draw("rect", whole, { class: "paper" });
    const within = draw("g", whole, { class: document.body.className });
    const abreast = pieces.length < 3 ? pieces.length : 8;
    let wide = 0, high = 0;
    for (let first = 0; first < pieces.length; first += abreast) {
      const row = pieces.slice(first, first + abreast), above = LINE * Math.max(...row.map((piece) => piece.words.length));
      let x = 0;
      for (const { svg, width, height, words } of row) {
        words.forEach((line, n) => draw("text", within, { x, y: high + 11 + LINE * n }, line));
        within.append(copyOf(svg, { x, y: high + above, width, height }));
        wide = Math.max(wide, x + width);
        x += width + GAP;
      }
      high += above + Math.max(...row.map((piece) => piece.height)) + GAP;
    }
    for (const el of [whole, paper]) for (const [name, v] of [["width", wide], ["height", high]]) el.setAttribute(name, v);
    whole.setAttribute("viewBox", `0 0 ${wide} ${high}`);
    return new XMLSerializer().serializeToString(whole).replace(/[\0-\x08\v\f\x0e-\x1f\ufffe\uffff]/g, "\ufffd") + "\n";
  }

  const exact = (v) => (Number.isFinite(v) ? Math.round(v * 1e6) / 1e6 : "");
  const field = (v) => (/[",\r\n]/.test(v) ? `"${String(v).replace(/"/g, '""')}"` : v);
  const binOf = (side, bin) => [bin * side.dt_ps, Math.min(side.dt_ps, side.length_ps - bin * side.dt_ps)];
  // The values of a series by bin, without gaps; `row` makes the row.
  function rowsOf(key, scale, row) {
    const side = sides.get(Number(key[0])), rows = [];
    for (let bin = 0; side && bin < side.bins; bin++) {
      const v = value(key, bin);
      if (Number.isFinite(v)) rows.push(row(side.name, binOf(side, bin), exact(v * scale)));
    }
    return rows;
  }
  const tables = {
    "over-time": () => [
      ["panel", "run", "series", "unit", "t_ps", "dt_ps", "value_min", "value", "value_max"],
      ...meta.lines.flatMap(([key, panel, name, unit, scale]) =>
        rowsOf(key, scale, (run, bin, v) => [panel, run, name, unit, ...bin, "", v, ""])),
    ],
    "every-port": () => [
      ["run", "port", "t_ps", "dt_ps", "received_share"],
      ...meta.sides.flatMap(({ side }) => all(".multiples figure").flatMap((el) => {
        const name = el.querySelector("b [title]")?.title ?? el.querySelector("b").textContent;
        const key = all("[data-k]", el).map((read) => read.dataset.k).find((key) => Number(key[0]) === side);
        return key ? rowsOf(key, 1, (run, bin, v) => [run, name, ...bin, v]) : [];
      })),
    ],
    "fabric": () => [
      ["run", "t_ps", "dt_ps", "port", "feeds", "hold_share", "is_root", "received_share"],
      ...meta.sides.flatMap((side) => {
        const bin = binAt(side.side, time);
        const isRoot = (output) => side.roots.some(([o, from, to]) => o === output && bin >= from && bin < to);
        const shares = meta.outputs.map((_, output) => `${side.side}.h${output}`);
        return bin < 0 ? [] : meta.outputs.flatMap(([port, feeds, node], output) => (series.has(shares[output]) ? [[side.name, ...binOf(side, bin),
          port, feeds, exact(value(shares[output], bin)), Number(isRoot(output)), exact(value(`${side.side}.x${node}`, bin))]] : []));
      }),
    ],
  };
  const tableOf = (name) => meta.tables[name] ?? tables[name]().map((row) => row.map(field).join(",") + "\n").join("");

  for (const place of all(".save")) {
    const name = place.dataset.save, [svg, csv] = all("button", place);
    svg.addEventListener("click", () => save(name + ".svg", pictureOf(place.parentElement), "image/svg+xml"));
    csv.addEventListener("click", () => save(name + ".csv", tableOf(name), "text/csv"));
  }

  // ---- a reference picture over a panel

  const opacity = $("opacity");
  const layOver = () => all(".overlay").forEach((el) => el.setAttribute("opacity", opacity.value / 100));
  opacity?.addEventListener("input", layOver);

  // ---- begin

  (async () => {
    theme.begin(remember);
    if (typeof DecompressionStream === "undefined") {
      $("named").textContent = "This browser cannot unpack the series: the page stays as it is.";
      return;
    }
    await unpack();
    for (const control of all("footer.bar, .save, .over")) control.hidden = false;
    if (opacity) layOver();
    document.body.classList.add("live");
    paint();
    recall();
    document.body.dataset.ready = "1";
  })();
})();
