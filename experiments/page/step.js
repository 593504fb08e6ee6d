"use strict";
(() => {
  const story = JSON.parse(document.getElementById("story").textContent);
  const { frames, starts, cells, entries, names, map } = story;
  const get = (id) => document.getElementById(id);
  const rows = [...document.querySelectorAll(".frame")];
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const PACE_MS = 1500, FEW = 4, ASIDE = 4.5, SVG = "http://www.w3.org/2000/svg";
  const { ranks, nodes } = story, many = nodes.length * names.length;
  const buffers = story.first.map((row) => [...row]), slots = new Map();
  let at = 0, from = 0, timer = 0, motion = 0;

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
    while (at < wanted) apply(frames[at++], 3);
    while (at > wanted) apply(frames[--at], 2);
  }

  function apply(frame, which) {
    const order = which === 3 ? (list) => list : (list) => [...list].reverse();
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

  function showBuffers() {
    const changed = new Set(), read = new Set();
    for (const frame of now()) {
      for (const [rank, cell] of frame.buffers) changed.add(`${rank} ${cell}`);
      const source = rankOf(frame.path[0] ?? "");
      if (source >= 0) for (const [, cell] of frame.buffers) read.add(`${source} ${cell}`);
    }
    const tight = many > 72 || names.length > 8;
    const head = element("tr", "", element("th", ""));
    for (const name of names) head.append(element("th", "", names.length > 8 ? name.replace(/^\D*/, "") : name.replace(/^elements? /, "")));
    const body = element("tbody");
    buffers.forEach((row, rank) => {
      const mark = element("i");
      const heading = element("th", "", mark, many > 600 ? `${rank}` : nodes[rank]);
      heading.scope = "row";
      mark.style.setProperty("--h", hue(rank));
      if (rank >= ranks) mark.style.background = "var(--soft)";
      const line = element("tr", "", heading);
      row.forEach((number, cell) => {
        const [who, text, values] = cells[number], goal = story.goals[rank][cell];
        const done = goal && goal.join() === who.join(), key = `${rank} ${cell}`;
        const kinds = ["cell", done && "done", changed.has(key) ? "changed" : read.has(key) && "read"];
        const box = element("td", kinds.filter(Boolean).join(" "), stripe(who));
        box.append(element("div", "who", tight && who.length > 1 && who.length < ranks ? `Σ ${who.length}` : text), element("div", "numbers", some(values)));
        box.title = `${nodes[rank]}, ${names[cell]}: ${text} = ${values.join(" ")}`;
        line.append(box);
      });
      body.append(line);
    });
    get("buffers").className = many > 600 ? "tight tiny" : tight ? "tight" : "";
    const box = get("buffers"), left = box.scrollLeft;
    box.style.setProperty("--columns", names.length);
    box.replaceChildren(element("table", "buffers", element("thead", "", head), body));
    box.scrollLeft = left;
    const mark = box.querySelector(".changed");
    if (!mark) return;
    const outer = box.getBoundingClientRect(), inner = mark.getBoundingClientRect();
    if (inner.left < outer.left + 60 || inner.right > outer.right) box.scrollLeft += inner.left - outer.left - outer.width / 2;
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
        if (total >= 0) row.append(element("td", "", stripe(cells[total][0]), `${cells[total][1]} = ${some(cells[total][2])}`));
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
  const layers = {};
  const glyphs = new Map();

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
    return drawn("path", { d: "M-6 -6L7 0L-6 6Z", class: `head${lost}`, transform: place });
  }

  function drawMap() {
    const svg = drawn("svg", { viewBox: `0 0 ${map.width} ${map.height}`, width: map.width, height: map.height, role: "img", "aria-label": "Topology" });
    get("map").classList.toggle("wide", map.width > 1100);
    for (const name of ["wires", "loads", "routes", "nodes", "pills"]) svg.append((layers[name] = drawn("g", {})));
    for (const [a, b] of map.links) layers.wires.append(drawn("path", { d: line(a, b), class: "wire" }));
    for (const [name, x, y, isHost, label] of map.nodes) {
      const width = isHost ? 34 : 40, isRank = isHost && rankOf(name) < ranks;
      const box = drawn("g", { class: `node${isRank ? " rank" : ""}` });
      if (isRank) box.style.setProperty("--h", hue(rankOf(name)));
      box.append(drawn("rect", { x: x - width / 2, y: y - 13, width, height: 26, rx: isHost ? 5 : 13 }), drawn("text", { x, y }, name));
      box.append(drawn("title", {}, label === name ? name : `${name}: ${label}`));
      layers.nodes.append(box);
      glyphs.set(name, box);
    }
    get("map").replaceChildren(svg);
  }

  function loadsOf(step) {
    const loads = new Map();
    if (step < 0) return loads;
    for (const frame of frames.slice(starts[step], starts[step + 1])) {
      frame.path.slice(1).forEach((to, i) => {
        const key = `${frame.path[i]} ${to}`, known = loads.get(key) || [0, 0];
        loads.set(key, [known[0] + 1, known[1] + frame.size]);
      });
    }
    return loads;
  }

  const shorter = (size) => (size < 10000 ? `${size} B` : `${(size / 1024).toFixed(1)} KiB`);

  function showLinks(loads, active) {
    const top = Math.max(1, ...[...loads.values()].map(([, size]) => size));
    const number = (name) => index(name) + (name[0] === "s" ? 1000 : 0);
    const order = [...loads].sort(([a, x], [b, y]) => y[1] - x[1] || number(a.split(" ")[0]) - number(b.split(" ")[0]) || number(a.split(" ")[1]) - number(b.split(" ")[1]));
    get("links").replaceChildren(...order.map(([key, [count, size]]) => {
      const bar = element("i");
      bar.style.width = `${(100 * size) / top}%`;
      const row = element("div", `linkrow${active.has(key) ? " now" : ""}`, element("span", "", key.replace(" ", "→")), bar, element("span", "", count > 1 ? `${count} × = ${shorter(size)}` : shorter(size)));
      return row;
    }));
    if (!order.length) get("links").append(element("span", "empty", at ? "None: everything stays where it is." : "Nothing has been sent yet."));
  }

  function showMap(animate) {
    cancelAnimationFrame(motion);
    const shown = now(), step = at ? frames[at - 1].step : -1, loads = loadsOf(step), active = new Set();
    const top = Math.max(1, ...[...loads.values()].map(([, size]) => size));
    layers.loads.replaceChildren(...[...loads].map(([key, [, size]]) => drawn("path", { d: line(...key.split(" "), ASIDE), class: "load", "stroke-width": 1.5 + (5 * size) / top })));
    layers.routes.replaceChildren();
    layers.pills.replaceChildren();
    for (const glyph of glyphs.values()) glyph.classList.remove("end");
    const pills = [];
    for (const frame of shown) {
      if (frame.path.length < 2) continue;
      const lost = frame.action === "loss" ? " lost" : "";
      frame.path.slice(1).forEach((to, i) => {
        active.add(`${frame.path[i]} ${to}`);
        layers.routes.append(drawn("path", { d: line(frame.path[i], to, ASIDE), class: `route${lost}` }), head(frame.path[i], to, lost));
      });
      for (const end of [frame.path[0], frame.path.at(-1)]) glyphs.get(end).classList.add("end");
      const width = 6.7 * frame.label.length + (lost ? 28 : 14), pill = drawn("g", { class: `pill${lost}` });
      pill.append(drawn("rect", { x: -width / 2, y: -10, width, height: 20, rx: 10 }), drawn("text", {}, frame.label + (lost ? " ✕" : "")));
      layers.pills.append(pill);
      pills.push([pill, frame.path.slice(1).map((to, i) => [frame.path[i], to]), lost ? 0.5 : 1]);
    }
    showLinks(loads, active);
    const magnify = Math.min(1.7, Math.max(1, map.width / 480));  // large maps are shown small
    const settle = (share) => pills.forEach(([pill, ways, end]) => pill.setAttribute("transform", `translate(${point(ways, share * end)}) scale(${magnify})`));
    const REST = 0.7;  // of the way, so that ends can be seen
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
    return [mix(ax, mx, bx).toFixed(1), mix(ay, my, by).toFixed(1)];
  }

  // Words.
  const right = () => {
    let held = 0, asked = 0;
    story.goals.forEach((row, rank) => row.forEach((goal, cell) => {
      if (!goal) return;
      asked += 1;
      held += goal.join() === cells[buffers[rank][cell]][0].join();
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

  function showRows() {
    rows.forEach((row, number) => {
      row.classList.toggle("now", number >= from && number < at);
      row.classList.toggle("past", number < from);
      if (number === at - 1) row.setAttribute("aria-current", "step");
      else row.removeAttribute("aria-current");
    });
    const list = document.querySelector("#transcript ol"), row = rows[Math.max(0, at - 1)];
    if (!row) return;
    const outer = list.getBoundingClientRect(), inner = row.getBoundingClientRect();
    if (inner.top < outer.top + 30 || inner.bottom > outer.bottom - 30) list.scrollTop += inner.top - outer.top - outer.height / 2;
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
    history.replaceState(null, "", `#step=${at}`);
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
  rows.forEach((row, number) => row.addEventListener("click", () => go(number + 1)));
  const keys = { ArrowLeft: "back", ArrowRight: "next", ArrowUp: "step-back", ArrowDown: "step-next", PageUp: "step-back", PageDown: "step-next", Home: "first", End: "last", " ": "play" };
  addEventListener("keydown", (event) => {
    const action = keys[event.key], tag = event.target.tagName;
    if (!action || event.ctrlKey || event.metaKey || event.altKey || tag === "SELECT") return;
    if (event.key === " " && (tag === "BUTTON" || event.target.type === "checkbox")) return;
    event.preventDefault();
    actions[action]();
  });

  document.body.classList.add("live");
  for (const id of ["player", "scene", "state"]) get(id).hidden = false;
  const legend = [["changed", "written now"], ["read", "read now"], ["done", "✓ as it must be in the end"]];
  get("legend").append(...legend.flatMap(([kind, text]) => [element("b", kind, "\u00a0"), `${text}\u2003`]));
  drawMap();
  const wanted = /^#step=(\d+)$/.exec(location.hash);
  show(wanted ? Number(wanted[1]) : 0);
  addEventListener("hashchange", () => { const to = /^#step=(\d+)$/.exec(location.hash); if (to && Number(to[1]) !== at) go(Number(to[1])); });
})();
