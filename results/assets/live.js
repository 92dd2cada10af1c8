// The live page: one event stream, the history in one answer, at most four redraws in a second.
// It contacts no other server. It is appended to page.js.
(() => {
  const meta = JSON.parse($("pb-meta").textContent);
  const outputs = meta.outputs.length;
  const LEVELS = 13, NONE = 255, RATIO = 1.06 / 254, BAR = 78, PAINT_MS = 250, FEED_MAX = 200;
  // The number of bins that the server keeps.
  const BINS_MAX = 1024;
  // The lower bounds of the held classes of four bits; 0.10 is one of them.
  const HELD = 2;
  const bins = [];
  let first = 0, head = null, following = true, at = -1, over = null, stream = null, hello = null;

  // ---- values

  const sent = (bin, output) => (bin.row[2 * output] === NONE ? NaN : bin.row[2 * output] * RATIO);
  const hold = (bin, output) => bin.row[2 * output + 1] >> 4;
  // A line may represent several outputs, a row several adapters: those of a leaf.
  const bundle = (line) => meta.bundles[line - outputs];
  const folds = {
    least: (values) => Math.min(...values),
    most: (values) => Math.max(...values),
    mean: (values) => values.reduce((sum, v) => sum + v, 0) / Math.max(1, values.length),
  };
  const of = (read, bin, line, fold = "mean") => (line < outputs ? read(bin, line) : folds[fold](bundle(line).of.map((output) => read(bin, output))));
  const level = (klass) => (klass === 0 ? 0 : Math.max(1, Math.ceil((klass / 15) * (LEVELS - 1))));
  const counted = (n) => (n === 1 ? "1 output waits" : `${n} outputs wait`);
  const received = (bin, adapter) => folds.mean(adapter.to.map((output) => sent(bin, output)));
  const receivers = () => meta.adapters.filter((adapter) => adapter.to.length > 0);

  function add(number, end, row) {
    if (bins.length === 0) first = number;
    if (number !== first + bins.length) return false;
    const bin = { t: end / meta.tau_ps, row };
    const values = receivers().map((adapter) => received(bin, adapter)).filter(Number.isFinite);
    for (const fold of Object.keys(folds)) bin[fold] = folds[fold](values);
    bin.held = 0;
    for (let output = 0; output < outputs; output++) if (hold(bin, output) >= HELD) bin.held++;
    bins.push(bin);
    if (bins.length > BINS_MAX) {
      bins.shift();
      first++;
      drawn = Math.max(-1, drawn - 1);
      at = Math.max(0, at - 1);
    }
    return true;
  }

  // ---- the stream; the query contains the token, if there is one

  const query = (more) => {
    const said = new URLSearchParams(location.search);
    for (const [name, v] of Object.entries(more || {})) said.set(name, v);
    const text = said.toString();
    return text ? "?" + text : "";
  };

  let fetching = false;
  async function fetchColumns() {
    if (fetching) return;
    fetching = true;
    try {
      const answer = await fetch("/api/columns" + query({ from: 0 }));
      const view = new DataView(await answer.arrayBuffer());
      const [from, count, wide] = [0, 4, 8].map((place) => view.getUint32(place, true));
      if (wide !== outputs) return;
      bins.length = 0;
      for (let n = 0, place = 12; n < count; n++, place += 8 + 2 * wide) {
        const end = Number(view.getBigUint64(place, true));
        add(from + n, end, new Uint8Array(view.buffer, place + 8, 2 * wide));
      }
      drawn = -1;
      soon();
    } catch { /* the stream says when the server is there again */ } finally { fetching = false; }
  }

  const decode = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

  function connect() {
    if (stream || over) return;
    stream = new EventSource("/api/live" + query());
    stream.addEventListener("hello", (event) => {
      const said = JSON.parse(event.data);
      if (hello && hello.run !== said.run) return location.reload();
      hello = said;
      $("feed").replaceChildren();
      line("following");
      fetchColumns();
    });
    stream.addEventListener("bin", (event) => {
      const { end, row } = JSON.parse(event.data), number = Number(event.lastEventId);
      if (number < first + bins.length) return;
      if (!add(number, end, decode(row))) fetchColumns();
      soon();
    });
    stream.addEventListener("tick", (event) => {
      const before = head && head.phase;
      head = JSON.parse(event.data);
      if (head.phase !== before && head.phase) $("headline").textContent = `The phase “${head.phase}” has begun`;
      else if (!before && !head.phase && !meta.endless) $("headline").textContent = "The run is under way";
      soon();
    });
    stream.addEventListener("note", (event) => feed(JSON.parse(event.data)));
    stream.addEventListener("end", (event) => {
      over = JSON.parse(event.data);
      close();
      line("ended");
      $("headline").textContent = `${over.verdict.toUpperCase()}: ${over.sentence}`;
      $("lede").textContent = over.report ? `The report is ${over.report}` : "Nothing follows.";
      document.body.dataset.over = over.verdict;
      soon();
    });
    stream.onerror = () => { if (!over) line("lost, retrying"); if (stream && stream.readyState === EventSource.CLOSED) { close(); setTimeout(connect, 2000); } };
  }
  function close() { if (stream) stream.close(); stream = null; }
  function line(text) { if ($("line").textContent !== text) $("line").textContent = text; }
  document.addEventListener("visibilitychange", () => { if (document.hidden) { close(); line("paused while hidden"); } else connect(); });

  function feed({ t, kind, what }) {
    const words = { phase: "phase", root: "▲ root of congestion", unroot: "no longer a root", drop: "✕ frames lost", act: "◇ user action" };
    const row = document.createElement("tr");
    const cell = (text, name) => { const el = document.createElement("td"); el.textContent = text; if (name) el.className = name; row.append(el); };
    cell(grouped(t), "n");
    cell(words[kind] || kind);
    cell(what);
    $("feed").prepend(row);
    while ($("feed").childElementCount > FEED_MAX) $("feed").lastElementChild.remove();
    $("latest").textContent = `At ${grouped(t)} τ: ${words[kind] || kind}, ${what}`;
  }

  // ---- pictures

  const ways = all("path[data-e]").map((el) => ({ el, output: Number(el.dataset.e) }));
  const dots = all("path[data-s]").map((el) => ({ el, output: Number(el.dataset.s), fold: el.dataset.of }));
  const adapterOf = new Map(meta.adapters.map((adapter) => [String(adapter.node), adapter]));
  const rows = all("path[data-x]").map((el) => ({ begin: el.getAttribute("d"), adapters: el.dataset.x.split(" ").map((node) => adapterOf.get(node)) }));
  const rings = new Map(all("g.root").flatMap((el) => el.dataset.r.split(" ").map((output) => [Number(output), el])));
  let named = -1, asked = false, last = 0;

  // Unchanged attributes are not written.
  const put = (el, name, text) => { if (el.getAttribute(name) !== text) el.setAttribute(name, text); };
  const say = (id, text) => { if ($(id).textContent !== text) $(id).textContent = text; };

  // Lines of the same class that begin near each other are one element, because hundreds of elements are slow to
  // draw. Lines with the longest waits are on top.
  function merged(parent, lines) {
    const WIDE = 160, elements = new Map();
    for (const line of lines) {
      line.path = line.el.getAttribute("d");
      line.place = Math.floor(parseFloat(line.path.slice(1)) / WIDE);
    }
    const places = [...new Set(lines.map((line) => line.place))];
    for (let level = 0; level < LEVELS; level++) {
      for (const place of places) {
        const el = document.createElementNS("http://www.w3.org/2000/svg", "path");
        el.setAttribute("class", "w" + level);
        parent.append(el);
        elements.set(place * LEVELS + level, el);
      }
    }
    return (levelOf) => {
      const stale = new Set();
      for (const line of lines) {
        const now = levelOf(line);
        if (now === line.level) continue;
        if (line.level !== undefined) stale.add(line.place * LEVELS + line.level);
        stale.add(line.place * LEVELS + now);
        line.level = now;
      }
      for (const key of stale) {
        const alike = lines.filter((line) => line.place * LEVELS + line.level === key);
        elements.get(key).setAttribute("d", alike.map((line) => line.path).join(""));
      }
    };
  }
  const drawings = [merged(document.querySelector("g.lines:not(.dots)"), ways), merged(document.querySelector("g.dots"), dots)];
  drawings.forEach((draw) => draw(() => 0));
  const receivedBars = document.querySelector("path.received"), ranges = document.querySelector("path.range");

  function soon() {
    if (asked || document.hidden) return;
    asked = true;
    setTimeout(() => requestAnimationFrame(() => { asked = false; last = performance.now(); paint(); }), Math.max(0, PAINT_MS - (performance.now() - last)));
  }

  function paint() {
    const newest = bins.length - 1;
    if (newest < 0) return;
    const place = following ? newest : Math.max(0, Math.min(newest, at));
    const bin = bins[place];
    const trees = following && head ? head.trees || [] : [];
    if (inSight.has($("fabric"))) fabric(bin, trees);
    const sources = meta.adapters.filter((a) => a.from.some((output) => hold(bin, output) >= HELD)).length;
    say("caption", `${bin.held} of ${outputs} outputs wait, ${sources} of ${meta.adapters.length} sources are held up; ports received ${bin.mean.toFixed(2)} of line rate in the mean, ${bin.least.toFixed(2)} to ${bin.most.toFixed(2)}.`);
    say("standstill", trees.length ? `${counted(trees[0].size)} behind ${trees[0].name}` : bin.held ? `${counted(bin.held)}, of ${outputs}` : `None of ${outputs} outputs is held`);
    say("over", `At ${grouped(bin.t)} τ ports received ${bin.mean.toFixed(2)} of line rate in the mean`);
    say("now", `t = ${grouped(bin.t)} τ`);
    say("then", (following ? (over ? "ended" : "following") : "stopped here") + (meta.endless ? "" : ` · ${grouped(meta.length)} τ in all`));
    const slider = $("time-slider");
    put(slider, "max", String(newest));
    if (slider.value !== String(place)) slider.value = String(place);
    put(slider, "aria-valuetext", grouped(bin.t) + " MTU times");
    light();
    draw();
    tell(bin);
    document.body.dataset.bins = String(first + bins.length);
  }

  let ringed = [];
  function fabric(bin, trees) {
    for (const draw of drawings) draw(({ output, fold }) => level(of(hold, bin, output, fold)));
    const wide = (v) => Math.min(v, 1.06) * BAR;
    const known = ({ begin, adapters }) => ({ begin, values: adapters.map((adapter) => received(bin, adapter)).filter(Number.isFinite) });
    const bars = rows.map(known).filter(({ values }) => values.length);
    put(receivedBars, "d", bars.map(({ begin, values }) => `${begin}h${wide(folds.mean(values)).toFixed(1)}`).join(""));
    const range = ({ begin, values }) => {
      const [from, to] = [folds.least(values), folds.most(values)].map(wide);
      return `${begin}m${from.toFixed(1)} 0h${(to - from).toFixed(1)}`;
    };
    put(ranges, "d", bars.filter(({ values }) => values.length > 1).map(range).join(""));
    const now = trees.map((tree) => rings.get(tree.root)).filter(Boolean);
    for (const el of ringed) if (!now.includes(el)) el.setAttribute("hidden", "");
    for (const el of now) if (!ringed.includes(el)) el.removeAttribute("hidden");
    ringed = now;
  }

  function light() {
    if (!head) return;
    const late = head.late;
    const good = (late === null || late <= 0.1) && head.lost === 0;
    const p99 = late === null ? "" : ` late p99 ${late.toFixed(2)},`;
    say("light", head.live ? `host ${good ? "✓" : "✕"}${p99} ${head.lost} lost` : "virtual clock");
    $("light").classList.toggle("unsure", !good);
  }

  // Columns are appended. Everything is redrawn only after a change of the size, the theme or the history.
  const canvas = $("growth"), pen = canvas.getContext("2d");
  let drawn = -1, wide = 0, scale = 1, colours = {};
  const TOP = 150, GAP = 14, LOW = 40, EDGE = 34;
  // The begin of the figure: a full window moves on by half of its width.
  let origin = 0;
  // Columns end at pixel boundaries, because partly covered pixels would show as stripes.
  const x = (t) => Math.round((EDGE + ((t - origin) / meta.length) * (wide - EDGE)) * scale) / scale;
  const y = (v) => TOP - (Math.min(v, 1.06) / 1.06) * TOP;
  // Only the visible part is drawn.
  const inSight = new Set([canvas, $("fabric")]);
  const observer = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) isIntersecting ? inSight.add(target) : inSight.delete(target);
    soon();
  });
  inSight.forEach((el) => observer.observe(el));
  function prepare() {
    wide = canvas.clientWidth;
    scale = devicePixelRatio || 1;
    canvas.width = Math.round(wide * scale);
    canvas.height = Math.round((TOP + GAP + LOW) * scale);
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    const style = getComputedStyle(root);
    for (const name of ["run", "grid", "line", "hot", "muted"]) colours[name] = style.getPropertyValue("--" + name).trim();
    for (const v of [0, 0.5, 1]) { pen.fillStyle = v ? colours.grid : colours.line; pen.fillRect(EDGE, y(v), wide - EDGE, 1); }
    pen.fillStyle = colours.grid;
    pen.fillRect(EDGE, TOP + GAP, wide - EDGE, LOW);
    pen.fillStyle = colours.muted;
    pen.font = '11px Inter,ui-sans-serif,system-ui,sans-serif';
    pen.textAlign = "right";
    for (const v of [0.5, 1]) pen.fillText(String(v), EDGE - 8, y(v) + 4);
    pen.fillText("held", EDGE - 8, TOP + GAP + LOW / 2 + 4);
    drawn = Math.max(0, bins.findIndex((bin) => bin.t > origin));
  }
  function draw() {
    if (!inSight.has(canvas)) return;
    const newest = bins[bins.length - 1].t;
    if (meta.endless && (newest > origin + meta.length || newest < origin || drawn < 0)) {
      origin = Math.max(bins[0].t, newest - meta.length / 2);
      drawn = -1;
    }
    if (drawn < 0) prepare();
    for (; drawn < bins.length; drawn++) {
      const bin = bins[drawn], before = drawn > 0 ? bins[drawn - 1] : null;
      const left = x(before ? Math.max(origin, before.t) : origin), width = Math.max(1, x(bin.t) - left);
      pen.globalAlpha = 0.22;
      pen.fillStyle = colours.run;
      pen.fillRect(left, y(bin.most), width, Math.max(1, y(bin.least) - y(bin.most)));
      pen.globalAlpha = 1;
      pen.strokeStyle = colours.run;
      pen.lineWidth = 2;
      if (before && Number.isFinite(before.mean)) {
        const centre = (one, other) => (x(one) + x(other)) / 2;
        const from = Math.max(EDGE, drawn > 1 ? centre(before.t, bins[drawn - 2].t) : x(before.t) - 1);
        pen.beginPath();
        pen.moveTo(from, y(before.mean));
        pen.lineTo(centre(bin.t, before.t), y(bin.mean));
        pen.stroke();
      }
      const high = (bin.held / outputs) * LOW;
      pen.fillStyle = colours.hot;
      pen.fillRect(left, TOP + GAP + LOW - high, width, high);
    }
  }
  addEventListener("resize", () => { drawn = -1; soon(); });

  // ---- actions on a lab, for clients with the token

  if ($("acts") && query()) {
    $("acts").hidden = false;
    const words = { cut: "Cut the cable at PORT, in both directions?", lose: "Lose one in ten of the frames that PORT sends?", mend: "Repair the cable at PORT?", stop: "Stop this traffic?", start: "Start this traffic?" };
    for (const button of all("[data-act]")) {
      button.addEventListener("click", async () => {
        const act = button.dataset.act, port = $("at-port").value.trim();
        const action = act === "stop" || act === "start" ? { act, item: $("of-item").value || null } : act === "lose" ? { act, port, share: 0.1 } : { act, port };
        if ("port" in action && !port) { $("acted").textContent = "At which port?"; return; }
        if (!confirm(words[act].replace("PORT", port))) return;
        try {
          const answer = await fetch("/api/act" + query(), { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(action) });
          const said = (await answer.text()).trim();
          $("acted").textContent = answer.ok ? said[0].toUpperCase() + said.slice(1) : `Refused: ${said}`;
        } catch { $("acted").textContent = "The server does not answer"; }
      });
    }
    for (const way of ways) way.el.addEventListener("click", () => { if (way.output < outputs) $("at-port").value = meta.outputs[way.output]; });
  }

  // ---- names, slider

  function tell(bin) {
    if (named < 0) return;
    const v = of(sent, bin, named), name = named < outputs ? meta.outputs[named] : bundle(named).name;
    $("named").textContent = `${name}: held about ${Math.round((of(hold, bin, named) / 15) * 100)} % of the bin, sends ${Number.isFinite(v) ? v.toFixed(2) : "–"} of line rate`;
  }
  for (const way of ways) way.el.addEventListener("pointerenter", () => { named = way.output; if (bins.length) tell(bins[following ? bins.length - 1 : Math.max(0, at)]); });
  $("time-slider").addEventListener("input", (event) => { at = Number(event.target.value); follow(at >= bins.length - 1); });
  function follow(on) { following = on; $("follow").setAttribute("aria-pressed", String(on)); soon(); }
  $("follow").addEventListener("click", () => { at = bins.length - 1; follow(!following); });
  theme.begin(() => { drawn = -1; soon(); });
  document.body.classList.add("live");
  connect();
})();
