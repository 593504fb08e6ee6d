"use strict";
// A matrix of cells on one canvas: a row per rank, a column per range of the tensors.
// Cells that have room show whose contributions they hold: a tick per rank, or a mosaic of ticks in
// several lines. Smaller ones are filled in proportion to the number of contributions.
function makeMatrix(box, { heads, columns, ranks, rankColor, cellOf, tell }) {
  const TOP = 18, MOST_WIDE = Math.max(110, 2 * ranks + 10), TALL = 30, TEXT = 13, LEAST = 4, MOST_HIGH = 900;
  const canvas = document.createElement("canvas"), pen = canvas.getContext("2d");
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `${heads.length} rows of ${columns.length} cells: whose contributions each rank holds; the text says what changes`);
  box.replaceChildren(canvas);
  let left = 0, wide = 0, high = 0, gap = 0, paint = {}, mode = "", dots = {}, drawn = [], width = 0;

  function measure() {
    width = box.clientWidth;
    pen.font = "600 11px system-ui, sans-serif";
    left = Math.ceil(Math.max(...heads.map((head) => pen.measureText(head).width))) + 22;
    wide = Math.max(LEAST, Math.min(MOST_WIDE, Math.floor((width - left) / columns.length)));
    high = wide >= 30 ? TALL : Math.max(LEAST, Math.min(20, wide));
    high = Math.min(high, Math.max(7, Math.floor(MOST_HIGH / heads.length)));
    gap = Math.min(wide, high) >= 12 ? 3 : 1;
    arrange();
    const scale = window.devicePixelRatio || 1, [w, h] = [left + wide * columns.length, TOP + high * heads.length];
    [canvas.width, canvas.height] = [Math.round(w * scale), Math.round(h * scale)];
    [canvas.style.width, canvas.style.height] = [`${w}px`, `${h}px`];
    Object.assign(canvas.dataset, { left, top: TOP, wide, high, gap });
    pen.setTransform(scale, 0, 0, scale, 0, 0);
  }

  // How a cell says whose contributions it holds.
  function arrange() {
    const inside = wide - gap - 4, tall = high - gap - 4, worded = high >= TALL - 4 && wide >= 26;
    const room = worded ? tall - TEXT : tall;
    let best = { across: ranks, w: inside / ranks, h: room };
    if (best.w < 2) {
      for (let lines = 2; lines <= ranks; lines++) {
        const across = Math.ceil(ranks / lines), w = inside / across, h = room / lines;
        if (Math.min(w, h) > Math.min(best.w, best.h)) best = { across, w, h };
      }
    }
    mode = Math.min(best.w, best.h) < (best.across === ranks ? 2 : 4) ? "fill" : best.across === ranks ? "ticks" : "mosaic";
    dots = { ...best, worded };
  }

  function colors() {
    const style = getComputedStyle(document.body), of = (name) => style.getPropertyValue(`--${name}`).trim();
    paint = Object.fromEntries(["ink", "soft", "line", "card", "accent", "empty", "good", "bad", "new", "new-edge", "page"].map((name) => [name, of(name)]));
    paint.ranks = Array.from({ length: ranks }, (_, rank) => rankColor(rank, of("s"), of("l")));
  }

  function frameWork() {
    pen.fillStyle = paint.page;
    pen.fillRect(0, 0, canvas.width, canvas.height);
    pen.textBaseline = "middle";
    const everyRow = Math.ceil(12 / high), widest = Math.max(...columns.map((name) => pen.measureText(name).width)) + 6;
    const everyColumn = Math.ceil(widest / wide);
    pen.textAlign = "center";
    pen.fillStyle = paint.soft;
    pen.font = "11px system-ui, sans-serif";
    columns.forEach((name, i) => i % everyColumn || pen.fillText(name, left + (i + 0.5) * wide, TOP / 2));
    pen.textAlign = "left";
    pen.font = "600 11px system-ui, sans-serif";
    heads.forEach((head, i) => {
      const y = TOP + (i + 0.5) * high;
      pen.fillStyle = paint.ranks[i] || paint.soft;
      pen.fillRect(0, TOP + i * high + gap, 8, Math.max(2, high - 2 * gap));
      pen.fillStyle = paint.ink;
      if (i % everyRow === 0) pen.fillText(head, 13, y);
    });
  }

  function drawCell(row, column, cell) {
    const x = left + column * wide, y = TOP + row * high, w = wide - gap, h = high - gap, now = cell.kind === "changed";
    pen.fillStyle = paint.page;
    pen.fillRect(x, y, wide, high);
    pen.fillStyle = now ? paint.new : mode === "fill" ? paint.empty : paint.card;
    pen.fillRect(x, y, w, h);
    if (mode === "fill") drawFill(x, y, w, h, cell);
    else drawDots(x + 2, y + 2, cell);
    const edge = now ? paint["new-edge"] : cell.kind === "read" ? (mode === "fill" ? paint.ink : paint.accent) : mode === "fill" ? "" : cell.done ? paint.good : paint.line;
    if (!edge) return;
    pen.strokeStyle = edge;
    const thick = cell.kind ? (mode === "fill" ? 2 : 1.5) : 1;
    pen.lineWidth = thick;
    pen.setLineDash(cell.kind === "read" ? [3, 2] : []);
    pen.strokeRect(x + thick / 2, y + thick / 2, w - thick, h - thick);
  }

  function drawFill(x, y, w, h, { who, done, kind }) {
    if (!who.length) return;
    pen.fillStyle = kind === "changed" ? paint["new-edge"] : done ? paint.good : who.twice ? paint.bad : who.length === 1 ? paint.ranks[who[0]] : paint.accent;
    const share = Math.min(h, Math.max(2, Math.round((h * who.length) / ranks)));
    pen.fillRect(x, y + h - share, w, share);
  }

  function drawDots(x, y, { who, text, done }) {
    const { across, w, h, worded } = dots, between = w >= 3 ? 1 : w >= 2 ? 0.5 : 0;
    pen.fillStyle = paint.empty;
    pen.fillRect(x, y, across * w, Math.ceil(ranks / across) * h - between);
    for (const rank of who) {
      pen.fillStyle = paint.ranks[rank];
      pen.fillRect(x + (rank % across) * w, y + Math.floor(rank / across) * h, w - between, h - between);
    }
    if (who.twice) {
      pen.fillStyle = paint.bad;
      pen.fillRect(x, y, across * w, 2);
    }
    if (!worded) return;
    pen.font = "10px ui-monospace, 'DejaVu Sans Mono', monospace";
    const room = wide - gap - 6 - (done ? 9 : 0), short = who.length > 1 && who.length < ranks ? `Σ ${who.length}` : text.replace(" all", "");
    const shown = [text, short].find((words) => pen.measureText(words).width <= room);
    pen.textAlign = "left";
    pen.fillStyle = paint.ink;
    if (shown) pen.fillText(shown, x + 1, y + Math.ceil(ranks / across) * h + TEXT / 2 + 1);
    pen.fillStyle = paint.good;
    if (done) pen.fillText("✓", x + wide - gap - 12, y + Math.ceil(ranks / across) * h + TEXT / 2 + 1);
  }

  // Draw the cells that are not as they were when they were last drawn.
  function draw() {
    for (let row = 0; row < heads.length; row++) {
      for (let column = 0; column < columns.length; column++) {
        const cell = cellOf(row, column), key = `${cell.number}${cell.kind}`, i = row * columns.length + column;
        if (drawn[i] === key) continue;
        drawn[i] = key;
        drawCell(row, column, cell);
      }
    }
  }

  function redraw() {
    measure();
    colors();
    drawn = [];
    frameWork();
    draw();
  }

  canvas.addEventListener("pointermove", (event) => {
    const row = Math.floor((event.offsetY - TOP) / high), column = Math.floor((event.offsetX - left) / wide);
    if (row >= 0 && column >= 0 && row < heads.length && column < columns.length) tell(row, column);
  });
  canvas.addEventListener("pointerleave", () => tell(-1, -1));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  new ResizeObserver(() => box.clientWidth !== width && redraw()).observe(box);
  redraw();
  return {
    draw,
    mode: () => mode,
    // Where a cell is, in the box's own pixels.
    reveal(row, column) {
      const x = left + column * wide, y = TOP + row * high;
      if (x < box.scrollLeft + left || x + wide > box.scrollLeft + box.clientWidth) box.scrollLeft = x - box.clientWidth / 2;
      if (y < box.scrollTop || y + high > box.scrollTop + box.clientHeight) box.scrollTop = y - box.clientHeight / 2;
    },
  };
}
