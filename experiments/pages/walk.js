"use strict";
(() => {
  const walk = JSON.parse(document.getElementById("walk").textContent);
  const steps = [...document.querySelectorAll("#steps .step")];
  const get = (id) => document.getElementById(id);
  const FEW = 4, MANY = 16, PACE_MS = 900;
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  let at = 0, timer = 0;

  // Fields before each step follow from what the steps up to it wrote.
  const states = [];
  {
    let known = new Map(), afterIngress = known;
    for (const step of walk.steps) {
      if (step.begin === "manager") afterIngress = known;
      if (step.begin === "egress") known = new Map([...afterIngress].filter(([name]) => name.includes(".")));
      if (step.set) {
        known = new Map(known);
        for (const [name, value] of step.set) known.set(name, value);
      }
      states.push(known);
    }
  }

  function element(tag, text, kind) {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (kind) made.className = kind;
    return made;
  }

  function group(name) {
    if (name.endsWith(".isValid()")) return name.slice(0, -10);
    if (name.includes("[") && !name.includes("].")) return "registers and counters";
    const dot = name.lastIndexOf(".");
    return dot < 0 ? "variables" : name.slice(0, dot);
  }

  function showFields() {
    const now = states[at], changed = new Set((walk.steps[at].set || []).map(([name]) => name));
    const before = at ? states[at - 1] : new Map();
    const groups = new Map();
    for (const [name, value] of now) {
      const key = group(name);
      if (!groups.has(key)) groups.set(key, []);
      groups.get(key).push([name, value]);
    }
    const order = [...groups].sort(([, a], [, b]) =>
      b.some(([name]) => changed.has(name)) - a.some(([name]) => changed.has(name)));
    get("fields").replaceChildren(...order.map(([key, fields]) => {
      const table = element("table"), caption = element("caption");
      const valid = now.get(`${key}.isValid()`);
      caption.append(element("b", key), valid === undefined ? "" : valid === "true" ? " valid" : " not valid");
      if (changed.has(`${key}.isValid()`)) caption.append(" ", element("mark", valid === "true" ? "new" : "gone"));
      if (valid === "false") table.className = "gone";
      table.append(caption);
      const shown = fields.filter(([name]) => !name.endsWith(".isValid()"));
      const cut = shown.length > MANY ? FEW : shown.length;
      shown.slice(0, cut).forEach(([name, value]) => {
        const row = element("tr"), cell = element("td");
        const short = name.startsWith(key + ".") ? name.slice(key.length + 1) : name;
        row.append(element("th", short), cell);
        if (changed.has(name) && before.has(name) && before.get(name) !== value) {
          cell.append(element("s", before.get(name)), " → ");
        }
        cell.append(changed.has(name) ? element("mark", value) : value);
        table.append(row);
      });
      if (shown.length > cut) {
        const row = element("tr"), cell = element("td");
        const more = shown.slice(cut), touched = more.filter(([name]) => changed.has(name)).length;
        cell.append(touched ? element("mark", `${touched} of them written`) : "");
        row.append(element("th", `and ${more.length} more`, "soft"), cell);
        table.append(row);
      }
      return table;
    }));
  }

  function showBytes() {
    let from = at;
    const leaving = walk.steps[at].data !== undefined;
    if (!leaving) while (from > 0 && walk.steps[from].begin !== "ingress") from--;
    const step = walk.steps[from], data = step.data || "";
    const changed = new Set(step.changed || []), [first, end] = walk.steps[at].range || [0, 0];
    const box = get("bytes"), bytes = data.match(/../g) || [];
    box.replaceChildren();
    bytes.forEach((byte, i) => {
      if (i % 16 === 0) box.append(element("i", `${i ? "\n" : ""}${i.toString(16).padStart(4, "0")}  `));
      box.append(changed.has(i) ? element("mark", byte) : i >= first && i < end ? element("b", byte) : byte, " ");
    });
    const marked = box.querySelector("mark, b");
    box.scrollTop = marked ? marked.offsetTop - box.offsetTop - 20 : 0;
  }

  function showSource() {
    document.querySelectorAll(".line.now, .line.seen").forEach((line) => line.classList.remove("now", "seen"));
    walk.steps.slice(0, at + 1).forEach(({ at: place }) => {
      if (place) get(`L${place[0]}-${place[1]}`)?.classList.add("seen");
    });
    const here = walk.steps[at].at, place = here || walk.steps.slice(0, at).reverse().find((step) => step.at)?.at;
    const line = place && get(`L${place[0]}-${place[1]}`);
    if (!line) return;
    if (here) line.classList.add("now");
    reveal(get("source"), line, 0.4);
  }

  function reveal(box, item, share) {
    const outer = box.getBoundingClientRect(), inner = item.getBoundingClientRect();
    if (inner.top > outer.top + 40 && inner.bottom < outer.bottom - 40) return;
    const top = box.scrollTop + inner.top - outer.top - share * box.clientHeight;
    const far = Math.abs(top - box.scrollTop) > 1.5 * box.clientHeight;
    box.scrollTo({ top, behavior: calm || far ? "instant" : "smooth" });
  }

  function show(number) {
    steps[at].classList.remove("now");
    at = Math.max(0, Math.min(number, steps.length - 1));
    const step = steps[at];
    step.classList.add("now");
    step.setAttribute("aria-current", "step");
    const card = step.cloneNode(true);
    card.removeAttribute("id");
    const inner = element("div", undefined, step.classList.contains("bad") ? "bad" : step.classList.contains("good") ? "good" : "");
    inner.append(...card.childNodes);
    get("card").replaceChildren(inner);
    get("scrub").value = at + 1;
    get("count").textContent = `${at + 1} / ${steps.length}`;
    reveal(get("steps"), step, 0.4);
    showSource();
    showBytes();
    showFields();
    history.replaceState(null, "", `#at-${at + 1}`);
  }

  function play(on) {
    clearInterval(timer);
    timer = on ? setInterval(() => (at + 1 < steps.length ? show(at + 1) : play(false)), PACE_MS) : 0;
    get("play").textContent = on ? "❚❚ Pause" : "▶ Play";
  }

  function go(number) {
    play(false);
    show(number);
  }

  const actions = {
    first: () => go(0), back: () => go(at - 1), next: () => go(at + 1), last: () => go(steps.length - 1),
    play: () => { if (!timer && at + 1 === steps.length) show(0); play(!timer); },
  };
  Object.entries(actions).forEach(([id, action]) => get(id).addEventListener("click", action));
  get("scrub").addEventListener("input", (event) => go(event.target.value - 1));
  steps.forEach((step, number) => step.addEventListener("click", () => go(number)));
  const keys = { ArrowLeft: "back", ArrowRight: "next", ArrowUp: "back", ArrowDown: "next", Home: "first", End: "last", " ": "play" };
  addEventListener("keydown", (event) => {
    const action = keys[event.key];
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === " " && event.target.tagName === "BUTTON") return;
    event.preventDefault();
    actions[action]();
  });
  const fit = () => document.body.style.setProperty("--top", `${document.querySelector("header").offsetHeight}px`);
  addEventListener("resize", fit);

  document.body.classList.add("live");
  get("player").hidden = get("now").hidden = false;
  fit();
  const wanted = /^#at-(\d+)$/.exec(location.hash);
  show(wanted ? wanted[1] - 1 : 0);
})();
