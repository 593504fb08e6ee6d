(() => {
  const story = JSON.parse(document.getElementById("story").textContent);
  const { starts, entries, names, map, paths, times, ranks, nodes } = story;
  const get = (id) => document.getElementById(id);
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const PACE_MS = 1500, FEW = 4, MOST_PILLS = 12, MOST_LINKS = 150, REST_MS = 200, SVG = "http://www.w3.org/2000/svg";
  const who = story.who.map((text) => membersOf(text));
  const cells = story.cells.map(([name, ...numbers]) => ({ who: who[name], name, text: story.who[name], numbers }));
  const frames = story.frames.map(frameOf);
  const buffers = story.first.map((row) => [...row]), slots = new Map();
  let at = 0, from = 0, timer = 0, motion = 0, noting = 0;

  // Ranks of `Σ{0-5,8}`, `{2}`, `Σ all` and `∅`.
  function membersOf(text) {
    const all = [];
    if (text === "Σ all") for (let rank = 0; rank < ranks; rank++) all.push(rank);
    for (const [, first, last] of text.matchAll(/(\d+)(?:-(\d+))?/g)) {
      for (let rank = Number(first); rank <= Number(last ?? first); rank++) all.push(rank);
    }
    all.twice = all.some((rank, i) => rank === all[i - 1]);
    return all;
  }

  // A sentence is a pattern and the numbers that are in it.
  function say([pattern, ...numbers]) {
    return story.patterns[pattern].replaceAll("\x1f", () => numbers.shift());
  }

  function frameOf([action, title, text, label, path, size, time, changes, filled]) {
    const threes = (list) => Array.from({ length: list.length / 3 }, (_, i) => list.slice(3 * i, 3 * i + 3));
    return {
      action: story.actions[action], path: paths[path], size, time: times[time], buffers: threes(changes), entries: threes(filled),
      get title() { return say(title); },
      get text() { return say(text); },
      get label() { return say(label); },
    };
  }

  // Changes are [where, which, after]: find what was there before, so that they can be undone.
  function findBefore() {
    const held = story.first.map((row) => [...row]), kept = new Map();
    frames.forEach((frame, number) => {
      while (starts[step + 1] <= number) step++;
      frame.step = step;
      for (const change of frame.buffers) {
        change.push(held[change[0]][change[1]]);
        held[change[0]][change[1]] = change[2];
      }
      for (const change of frame.entries) {
        const key = `${change[0]} ${change[1]}`;
        change.push(kept.get(key) ?? -1);
        kept.set(key, change[2]);
      }
    });
  }
  let step = 0;
  findBefore();

  function element(tag, kind, ...inner) {
    const made = document.createElement(tag);
    if (kind) made.className = kind;
    made.append(...inner);
    return made;
  }

  function drawn(tag, attributes, ...inner) {
    const made = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...inner);
    return made;
  }

  // Every rank has a colour; where there are many, neighbours' hues are far apart.
  const hue = (rank) => Math.round(ranks <= 8 ? 215 + (rank * 360) / ranks : 215 + rank * 137.5) % 360;
  const rankOf = (name) => (/^h\d+$/.test(name) ? Number(name.slice(1)) : -1);

  // The state, forwards and backwards.
  function walk(position) {
    const wanted = Math.max(0, Math.min(position, frames.length));
    while (at < wanted) apply(frames[at++], 2);
    while (at > wanted) apply(frames[--at], 3);
  }

  function apply(frame, which) {
    const order = which === 2 ? (list) => list : (list) => [...list].reverse();
    for (const change of order(frame.buffers)) buffers[change[0]][change[1]] = change[which];
    for (const change of order(frame.entries)) {
      const key = `${change[0]} ${change[1]}`;
      if (change[which] < 0) slots.delete(key);
      else slots.set(key, change[which]);
    }
  }

  const stepBefore = (position) => [...starts].reverse().find((start) => start < position) ?? 0;
  const stepAfter = (position) => starts.find((start) => start > position) ?? frames.length;

  // Frames that are shown as happening now: the last one, or the whole step.
  const now = () => frames.slice(from, at);

  function stripe(who) {
    const box = element("div", "stripe");
    box.setAttribute("aria-hidden", "true");
    for (let rank = 0; rank < ranks; rank++) {
      const times = who.filter((member) => member === rank).length;
      const part = element("b", times ? (times > 1 ? "on twice" : "on") : "");
      part.style.setProperty("--h", hue(rank));
      box.append(part);
    }
    return box;
  }

  const some = (numbers) => numbers.slice(0, FEW).join(" ") + (numbers.length > FEW ? " …" : "");

  // What is written and read now, by rank and cell.
  function touched() {
    const kinds = new Map();
    for (const frame of now()) {
      const source = rankOf(frame.path[0] ?? "");
      if (source >= 0) for (const [, cell] of frame.buffers) kinds.set(`${source} ${cell}`, "read");
    }
    for (const frame of now()) for (const [rank, cell] of frame.buffers) kinds.set(`${rank} ${cell}`, "changed");
    return kinds;
  }

  // Few cells are a table; many are a matrix on a canvas.
  const asTable = nodes.length * names.length <= 72 && names.length <= 8;
  let matrix = null, kinds = new Map();

  function cellOf(rank, cell) {
    const number = buffers[rank][cell], held = cells[number];
    return { number, who: held.who, text: held.text, kind: kinds.get(`${rank} ${cell}`) ?? "", done: story.goals[rank][cell] === held.name };
  }

  function tellCell(rank, cell) {
    const box = get("cell"), last = frames[at - 1]?.buffers[0];
    if (rank < 0 && last) [rank, cell] = last;
    if (rank < 0) return (box.textContent = "Point at a cell to see what it holds.");
    const held = cells[buffers[rank][cell]];
    box.textContent = `${nodes[rank]}, ${names[cell]}: ${held.text} = ${some(held.numbers)}`;
  }

  function showBuffers() {
    kinds = touched();
    if (asTable) return showTable();
    if (matrix) matrix.draw();
    else {
      const columns = names.map((name) => (names.length > 8 ? name.replace(/^\D*/, "") : name.replace(/^elements? /, "")));
      matrix = makeMatrix(get("buffers"), { heads: nodes, columns, ranks, cellOf, tell: tellCell, rankColor: (rank, s, l) => `hsl(${hue(rank)} ${s} ${l})` });
      showLegend(matrix.mode());
    }
    tellCell(-1, -1);
    const first = now().flatMap((frame) => frame.buffers)[0];
    if (first) matrix.reveal(first[0], first[1]);
  }

  function showTable() {
    const head = element("tr", "", element("th", ""));
    for (const name of names) head.append(element("th", "", name.replace(/^elements? /, "")));
    const body = element("tbody");
    buffers.forEach((row, rank) => {
      const mark = element("i"), heading = element("th", "", mark, nodes[rank]);
      heading.scope = "row";
      mark.style.setProperty("--h", hue(rank));
      if (rank >= ranks) mark.style.background = "var(--soft)";
      const line = element("tr", "", heading);
      row.forEach((number, cell) => {
        const { text, kind, done } = cellOf(rank, cell), { numbers } = cells[number];
        const box = element("td", ["cell", done && "done", kind].filter(Boolean).join(" "), stripe(cells[number].who));
        box.append(element("div", "who", text), element("div", "numbers", some(numbers)));
        box.title = `${nodes[rank]}, ${names[cell]}: ${text} = ${numbers.join(" ")}`;
        line.append(box);
      });
      body.append(line);
    });
    const box = get("buffers"), left = box.scrollLeft;
    box.replaceChildren(element("table", "buffers", element("thead", "", head), body));
    box.scrollLeft = left;
    const mark = box.querySelector(".changed");
    if (!mark) return;
    const outer = box.getBoundingClientRect(), inner = mark.getBoundingClientRect();
    if (inner.left < outer.left + 60 || inner.right > outer.right) box.scrollLeft += inner.left - outer.left - outer.width / 2;
  }

  function showLegend(mode) {
    const legend = [["changed", "written now"], ["read", "read now"], ["done", "✓ as it must be in the end"]];
    get("legend").replaceChildren(...legend.flatMap(([kind, text]) => [element("b", kind, "\u00a0"), `${text}\u2003`]));
    const hint = { ticks: "A tick per rank.", mosaic: "A tick per rank, in several lines, the first at the top left.", fill: "The fuller a cell, the more ranks are added up in it." }[mode];
    if (hint) get("legend").append(hint);
    get("legend").classList.toggle("fill", mode === "fill");
  }

  function showSwitches() {
    const box = get("switches");
    if (!entries.length) return;
    const changed = new Set(now().flatMap((frame) => frame.entries.map(([name, index]) => `${name} ${index}`)));
    const bySwitch = new Map();
    for (const [key, number] of slots) {
      const [name, index] = key.split(" ");
      if (!bySwitch.has(name)) bySwitch.set(name, []);
      bySwitch.get(name).push([Number(index), number, changed.has(key)]);
    }
    const order = [...bySwitch].sort(([a], [b]) => a.slice(1) - b.slice(1));
    box.replaceChildren(element("h2", "label", "In the switches: registers of the P4 program"));
    if (!order.length) box.append(element("p", "empty", "All registers are zero."));
    for (const [name, list] of order) {
      list.sort((a, b) => a[0] - b[0]);
      const table = element("table", "entries"), first = entries[list[0][1]];
      const head = element("tr", "", element("th", "", name));
      for (const [title] of first[0].slice(1)) head.append(element("th", "", title));
      head.replaceChild(element("th", "", `${name}: ${first[0][0][0]}`), head.firstChild);
      if (first[1] >= 0) head.append(element("th", "", "values"));
      table.append(element("thead", "", head));
      for (const [, number, isNew] of list) {
        const [facts, total] = entries[number], row = element("tr", isNew ? "changed" : "");
        for (const [, text, bits] of facts) row.append(element("td", "", ...(bits.length ? bits.map(bit) : [text])));
        if (total >= 0) row.append(element("td", "", stripe(cells[total].who), `${cells[total].text} = ${some(cells[total].numbers)}`));
        table.append(row);
      }
      box.append(table);
    }
  }

  function bit([name, on]) {
    const box = element("span", `bit${on ? " on" : ""}${rankOf(name) >= 0 ? " rank" : ""}`, name);
    if (rankOf(name) >= 0) box.style.setProperty("--h", hue(rankOf(name)));
    box.title = `${name}: ${on ? 1 : 0}`;
    return box;
  }

  // The topology.
  const place = new Map(map.nodes.map(([name, x, y]) => [name, [x, y]]));
  const arcs = new Set(map.links.filter(([, , arc]) => arc).flatMap(([a, b]) => [`${a} ${b}`, `${b} ${a}`]));
  const index = (name) => Number(name.slice(1));
  const layers = {}, glyphs = new Map(), sizes = new Map(map.nodes.map(([name, , , , , width, height]) => [name, [width, height]]));
  const hosts = map.nodes.filter(([, , , isHost]) => isHost), slim = Math.min(1, ...hosts.map(([, , , , , width]) => width / 34));
  const ASIDE = 4.5 * Math.max(0.3, slim);  // of a link's middle is each of its directions

  function bend(a, b) {
    const [ax, ay] = place.get(a), [bx, by] = place.get(b);
    const side = index(a) < index(b) ? 1 : -1;  // the same arc both ways
    return [(ax + bx) / 2 + side * map.arc * (by - ay), (ay + by) / 2 - side * map.arc * (bx - ax)];
  }

  function line(a, b, aside = 0) {
    const [ax, ay] = place.get(a), [bx, by] = place.get(b), length = Math.hypot(bx - ax, by - ay) || 1;
    const dx = (-(by - ay) / length) * aside, dy = ((bx - ax) / length) * aside;
    const [mx, my] = arcs.has(`${a} ${b}`) ? bend(a, b) : [(ax + bx) / 2, (ay + by) / 2];
    return `M${ax + dx} ${ay + dy}Q${mx + dx} ${my + dy} ${bx + dx} ${by + dy}`;
  }

  // An arrow's head at the middle of a link's direction.
  function head(a, b, lost) {
    const [x, y] = point([[a, b]], lost ? 0.42 : 0.58), [x1, y1] = point([[a, b]], lost ? 0.4 : 0.56);
    const turn = Math.atan2(y - y1, x - x1), dx = -Math.sin(turn) * ASIDE, dy = Math.cos(turn) * ASIDE;
    const place = `translate(${Number(x) + dx} ${Number(y) + dy}) rotate(${(turn * 180) / Math.PI})`;
    return drawn("path", { d: "M-6 -6L7 0L-6 6Z", class: `head${lost}`, transform: `${place} scale(${Math.max(0.6, slim)})` });
  }

  function drawNode([name, x, y, isHost, label, width, height], plain = false) {
    const isRank = isHost && rankOf(name) < ranks, turned = height > width && !plain;
    const font = plain ? 12.5 : Math.min(12.5, turned ? 0.8 * width : Math.min(0.75 * height, (1.65 * width) / name.length));
    const [w, h] = plain ? [34, 24] : [width, height], box = drawn("g", { class: `node${isRank ? " rank" : ""}` });
    if (isRank) box.style.setProperty("--h", hue(rankOf(name)));
    box.append(drawn("rect", { x: x - w / 2, y: y - h / 2, width: w, height: h, rx: Math.min(w, h) * (isHost ? 0.2 : 0.5) }));
    if (font >= 6) box.append(drawn("text", { x, y, style: `font-size: ${font}px`, ...(turned && { transform: `rotate(-90 ${x} ${y})` }) }, name));
    box.append(drawn("title", {}, label === name ? name : `${name}: ${label}`));
    return box;
  }

  function drawMap() {
    const svg = drawn("svg", { viewBox: `0 0 ${map.width} ${map.height}`, width: map.width, height: map.height, role: "img", "aria-label": "Topology" });
    get("map").classList.toggle("wide", map.width > 900);
    get("map").classList.toggle("full", map.width <= 900 && hosts.length > 16);
    for (const name of ["wires", "loads", "routes", "nodes", "ends", "pills"]) svg.append((layers[name] = drawn("g", {})));
    for (const [a, b] of map.links) layers.wires.append(drawn("path", { d: line(a, b), class: "wire", "stroke-width": Math.max(0.7, 2 * slim) }));
    for (const node of map.nodes) {
      const box = drawNode(node);
      layers.nodes.append(box);
      glyphs.set(node[0], [box, node]);
    }
    get("map").replaceChildren(svg);
  }

  // Mark where a message begins and ends; a box without room for its name gets a larger one.
  function showEnd(name) {
    const [box, node] = glyphs.get(name);
    box.classList.add("end");
    if (box.querySelector("text") && slim > 0.5) return;
    const large = drawNode(node, true);
    large.classList.add("end");
    layers.ends.append(large);
  }

  function reveal(name) {
    const box = get("map"), [x] = place.get(name);
    if (box.scrollWidth > box.clientWidth && (x < box.scrollLeft + 40 || x > box.scrollLeft + box.clientWidth - 40)) box.scrollLeft = x - box.clientWidth / 2;
  }

  const known = { step: -1, loads: new Map(), order: [], top: 1, anew: true, sign: "" };

  // What the links carry in a step, the largest first.
  function loadsOf(step) {
    if (step === known.step) return known;
    const loads = new Map();
    for (const frame of step < 0 ? [] : frames.slice(starts[step], starts[step + 1])) {
      frame.path.slice(1).forEach((to, i) => {
        const key = `${frame.path[i]} ${to}`, [count, size] = loads.get(key) || [0, 0];
        loads.set(key, [count + 1, size + frame.size]);
      });
    }
    const one = (name) => index(name) + (name[0] === "s" ? 1e6 : 0), number = (key) => 1e7 * one(key.split(" ")[0]) + one(key.split(" ")[1]);
    const order = [...loads].sort(([a, x], [b, y]) => y[1] - x[1] || number(a) - number(b));
    const sign = order.join();  // steps often use the same links alike
    return Object.assign(known, { step, loads, order, top: Math.max(1, order[0]?.[1][1] ?? 0), anew: sign !== known.sign, sign });
  }

  const shorter = (size) => (size < 10000 ? `${size} B` : `${(size / 1024).toFixed(1)} KiB`);

  function linkRow([key, [count, size]], top) {
    const bar = element("i");
    bar.style.width = `${(100 * size) / top}%`;
    return element("div", "linkrow", element("span", "", key.replace(" ", "→")), bar, element("span", "", count > 1 ? `${count} × = ${shorter(size)}` : shorter(size)));
  }

  const linkRows = new Map();

  // The links of the step, built once in it; beyond the first, those alone that are used now.
  function showLinks({ order, loads, top, anew }, active) {
    const box = get("links"), beyond = [...active].filter((key) => !linkRows.has(key));
    if (anew || beyond.length) {
      linkRows.clear();
      const first = order.slice(0, MOST_LINKS), known = new Set(first.map(([key]) => key));
      const extra = [...active].filter((key) => !known.has(key)).slice(0, MOST_LINKS).map((key) => [key, loads.get(key)]);
      for (const link of [...extra, ...first]) linkRows.set(link[0], linkRow(link, top));
      box.replaceChildren(...linkRows.values());
      if (order.length > linkRows.size) box.append(element("span", "empty", `and ${order.length - linkRows.size} more`));
      if (!order.length) box.append(element("span", "empty", at ? "None: everything stays where it is." : "Nothing has been sent yet."));
    }
    for (const [key, row] of linkRows) row.classList.toggle("now", active.has(key));
    const row = [...linkRows].find(([key]) => active.has(key))?.[1];
    if (row) box.scrollTop = Math.max(0, row.offsetTop - box.offsetTop - 40);
  }

  function showMap(animate) {
    cancelAnimationFrame(motion);
    const shown = now().filter((frame) => frame.path.length > 1), load = loadsOf(at ? frames[at - 1].step : -1), active = new Set();
    if (load.anew) layers.loads.replaceChildren(...load.order.map(([key, [, size]]) => drawn("path", { d: line(...key.split(" "), ASIDE), class: "load", "stroke-width": (1.5 + (5 * size) / load.top) * Math.max(0.35, slim) })));
    for (const layer of [layers.routes, layers.ends, layers.pills]) layer.replaceChildren();
    for (const [box] of glyphs.values()) box.classList.remove("end");
    const REST = 0.7;  // of the way, so that ends can be seen
    const pills = [], large = Math.min(1.7, Math.max(1, map.width / 480));  // large maps are shown small
    const magnify = get("map").className ? 1 : large;
    for (const frame of shown) {
      const lost = frame.action === "loss" ? " lost" : "";
      frame.path.slice(1).forEach((to, i) => {
        active.add(`${frame.path[i]} ${to}`);
        layers.routes.append(drawn("path", { d: line(frame.path[i], to, ASIDE), class: `route${lost}`, "stroke-width": 2.6 * Math.max(0.4, slim) }));
        if (shown.length <= MOST_PILLS) layers.routes.append(head(frame.path[i], to, lost));
      });
      if (shown.length <= MOST_PILLS) for (const end of [frame.path[0], frame.path.at(-1)]) showEnd(end);
      const text = shown.length > MOST_PILLS ? "" : frame.label + (lost ? " ✕" : ""), width = 6.7 * text.length + 14;
      const pill = drawn("g", { class: `pill${lost}` }, text ? drawn("rect", { x: -width / 2, y: -10, width, height: 20, rx: 10 }) : drawn("circle", { r: 2 + 3 * slim }));
      if (text) pill.append(drawn("text", {}, text));
      layers.pills.append(pill);
      const ways = frame.path.slice(1).map((to, i) => [frame.path[i], to]), end = lost ? 0.5 : 1;
      pills.push([pill, ways, end, text ? aside(point(ways, REST * end), width * magnify, 20 * magnify) : [0, 0]]);
    }
    showLinks(load, active);
    load.anew = false;
    if (shown.length) reveal(shown[0].path[0]);
    const settle = (share) => pills.forEach(([pill, ways, end, [dx, dy]]) => {
      const [x, y] = point(ways, share * end), part = share / REST;
      pill.setAttribute("transform", `translate(${[x + part * dx, y + part * dy].map((each) => each.toFixed(1))}) scale(${magnify})`);
    });
    if (!animate || calm) return settle(REST);
    const begin = performance.now(), lasts = (0.6 * PACE_MS) / get("speed").value;
    const tick = (time) => {
      const share = Math.min(1, Math.max(0, (time - begin) / lasts)), eased = share * share * (3 - 2 * share);
      settle(eased * REST);
      if (share < 1) motion = requestAnimationFrame(tick);
    };
    settle(0);
    motion = requestAnimationFrame(tick);
  }

  function point(ways, share) {
    const whole = Math.min(ways.length - 1e-6, Math.max(0, share * ways.length)), [a, b] = ways[Math.floor(whole)], t = whole % 1;
    const [ax, ay] = place.get(a), [bx, by] = place.get(b);
    const [mx, my] = arcs.has(`${a} ${b}`) ? bend(a, b) : [(ax + bx) / 2, (ay + by) / 2];
    const mix = (p, m, q) => (1 - t) * (1 - t) * p + 2 * t * (1 - t) * m + t * t * q;
    return [mix(ax, mx, bx), mix(ay, my, by)];
  }

  // How far a label that would lie on a node, or beyond the map, has to move.
  function aside([x, y], width, height) {
    const within = Math.min(Math.max(x, width / 2), Math.max(map.width - width / 2, width / 2));
    const hits = (dy) => map.nodes.some(([, at, level, , , wide, tall]) => Math.abs(at - within) < (wide + width) / 2 && Math.abs(level - y - dy) < (tall + height) / 2);
    const moves = Array.from({ length: 25 }, (_, i) => (i % 2 ? 1 : -1) * 4 * Math.ceil(i / 2));
    return [within - x, moves.find((dy) => !hits(dy)) ?? 0];
  }

  // Words.
  const right = () => {
    let held = 0, asked = 0;
    story.goals.forEach((row, rank) => row.forEach((goal, cell) => {
      if (goal < 0) return;
      asked += 1;
      held += goal === cells[buffers[rank][cell]].name;
    }));
    return `${held} of ${asked} cells hold what they must`;
  };

  function showCard() {
    const shown = now(), last = frames[at - 1], card = get("card");
    card.classList.toggle("lost", shown.some((frame) => frame.action === "loss"));
    if (!last) {
      get("count").textContent = `Start; ${frames.length} to come in ${starts.length - 1} steps`;
      get("title").textContent = "Every rank has numbers of its own";
      get("text").textContent = "Play, or press the right arrow; the down arrow goes a whole step.";
      return;
    }
    const when = last.time ? `, at ${last.time}` : "";
    get("count").textContent = `Step ${last.step + 1} of ${starts.length - 1}${when} · ${at} of ${frames.length} · ${right()}`;
    get("title").textContent = shown.length > 1 ? `${shown.length} at once: ${shown.map((f) => f.path.length ? `${f.path[0]}→${f.path.at(-1)}` : f.label).slice(0, 8).join(", ")}${shown.length > 8 ? " …" : ""}` : last.title;
    get("text").textContent = shown.length > 1 ? shown.slice(0, 4).map((f) => `${f.title}.`).join(" ") + (shown.length > 4 ? " …" : "") : last.text;
  }

  // The list of all frames: only the rows in sight are in the document.
  const ROW = 26;  // pixels, as in the style sheet
  const list = get("rows"), sheet = element("div", "sheet");
  list.append(sheet);
  sheet.style.height = `${ROW * (frames.length + starts.length - 1)}px`;
  const lineOf = (number) => (frames.length ? number + frames[number].step + 1 : 0);

  function lineAt(place) {
    let low = 0, high = starts.length - 1;  // the step whose heading is at or before this line
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (starts[middle] + middle <= place) low = middle;
      else high = middle;
    }
    const number = place - low - 1;
    return number < starts[low] ? stageLine(low) : frameLine(number);
  }

  function stageLine(step) {
    const first = frames[starts[step]], count = starts[step + 1] - starts[step], what = first.time ? "packet" : "transfer";
    const row = element("div", "stage", `step ${step + 1} of ${starts.length - 1}${first.time ? `, at ${first.time}` : ""}: ${count > 1 ? `${count} ${what}s at once` : `one ${what}`}`);
    row.setAttribute("role", "presentation");
    return row;
  }

  function frameLine(number) {
    const row = element("div", `frame${number >= from && number < at ? " now" : number < from ? " past" : ""}`, frames[number].title);
    row.setAttribute("role", "listitem");
    row.title = frames[number].text;
    if (number === at - 1) row.setAttribute("aria-current", "step");
    row.addEventListener("click", () => go(number + 1));
    return row;
  }

  function fillRows() {
    if (!frames.length) return;
    const first = Math.max(0, Math.floor(list.scrollTop / ROW) - 5), last = Math.min(frames.length + starts.length - 1, first + Math.ceil(list.clientHeight / ROW) + 10);
    sheet.replaceChildren(...Array.from({ length: Math.max(0, last - first) }, (_, i) => {
      const row = lineAt(first + i);
      row.style.top = `${ROW * (first + i)}px`;
      return row;
    }));
  }
  list.addEventListener("scroll", fillRows);

  function showRows() {
    if (!frames.length) return;
    const top = ROW * lineOf(Math.max(0, at - 1));
    if (top < list.scrollTop + ROW || top + 2 * ROW > list.scrollTop + list.clientHeight) list.scrollTop = Math.max(0, top - list.clientHeight / 2);
    fillRows();
  }

  function show(position, start = position - 1, animate = false) {
    walk(position);
    from = Math.max(0, Math.min(start, at));
    showCard();
    showBuffers();
    showSwitches();
    showMap(animate);
    showRows();
    get("scrub").value = at;
    clearTimeout(noting);  // browsers allow some hundred changes of the address in half a minute
    noting = setTimeout(() => history.replaceState(null, "", `#step=${at}`), REST_MS);
  }

  const forward = (animate) => (get("whole").checked ? show(stepAfter(at), stepBefore(stepAfter(at)), animate) : show(at + 1, at, animate));

  function play(on) {
    clearInterval(timer);
    timer = on ? setInterval(() => (at < frames.length ? forward(true) : play(false)), PACE_MS / get("speed").value) : 0;
    get("play").textContent = on ? "❚❚ Pause" : "▶ Play";
    get("card").setAttribute("aria-live", on ? "off" : "polite");
  }

  function go(position, start, animate) {
    play(false);
    show(position, start, animate);
  }

  const actions = {
    first: () => go(0),
    back: () => go(at - 1),
    next: () => { if (at < frames.length) go(at + 1, at, true); },
    last: () => go(frames.length),
    "step-back": () => { const end = stepBefore(at); go(end, stepBefore(end)); },
    "step-next": () => { if (at < frames.length) go(stepAfter(at), stepBefore(stepAfter(at)), true); },
    play: () => {
      const on = !timer;
      if (on && at === frames.length) show(0);
      play(on);
      if (on) forward(true);
    },
  };
  Object.entries(actions).forEach(([id, action]) => get(id).addEventListener("click", action));
  get("scrub").addEventListener("input", (event) => go(Number(event.target.value)));
  get("speed").addEventListener("change", () => timer && play(true));
  const keys = { ArrowLeft: "back", ArrowRight: "next", ArrowUp: "step-back", ArrowDown: "step-next", PageUp: "step-back", PageDown: "step-next", Home: "first", End: "last", " ": "play" };
  addEventListener("keydown", (event) => {
    const action = keys[event.key], tag = event.target.tagName;
    if (!action || event.ctrlKey || event.metaKey || event.altKey || tag === "SELECT") return;
    if (event.key === " " && (tag === "BUTTON" || event.target.type === "checkbox")) return;
    event.preventDefault();
    actions[action]();
  });

  document.body.classList.add("live");
  for (const id of ["player", "scene", "state", "rows"]) get(id).hidden = false;
  get("cell").hidden = asTable;
  showLegend("");
  drawMap();
  const wanted = /^#step=(\d+)$/.exec(location.hash);
  show(wanted ? Number(wanted[1]) : 0);
  addEventListener("hashchange", () => { const to = /^#step=(\d+)$/.exec(location.hash); if (to && Number(to[1]) !== at) go(Number(to[1])); });
})();
