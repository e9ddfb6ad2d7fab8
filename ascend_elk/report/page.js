"use strict";
// Draws the lanes of all cards on one canvas; a thousand lanes with their marks stay fluent.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const KINDS = {
    timeout: ["time-out", "#d98a00"],
    error: ["error", "#d63f3f"],
    hardware: ["hardware", "#a3199b"],
    retry: ["retry", "#2f7fd6"],
    late: ["late arrival", "#0f9d8a"],
    heartbeat: ["heartbeat", "#7a5cd6"],
    start: ["start", "#8b95a5"],
    end: ["end", "#8b95a5"],
  };
  const element = (id) => document.getElementById(id);
  const lanesCanvas = element("lanes"), axisCanvas = element("axis"), detail = element("detail");
  const hidden = new Set();
  const total = Math.max(data.seconds, 1e-3);
  let view = { from: -0.02 * total, to: 1.02 * total };
  let lanes = data.lanes, height = 0, left = 0, kept = false, boxes = [];
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  for (const kind of Object.keys(KINDS)) {
    const count = data.lanes.reduce((sum, lane) => sum + lane.marks.filter((mark) => mark[0] === kind).length, 0);
    if (!count) continue;
    const label = document.createElement("label"), box = document.createElement("input"), swatch = document.createElement("i");
    box.type = "checkbox"; box.checked = true;
    box.addEventListener("change", () => { box.checked ? hidden.delete(kind) : hidden.add(kind); draw(); });
    swatch.style.background = KINDS[kind][1];
    label.append(box, swatch, `${KINDS[kind][0]} (${count})`);
    element("legend").append(label);
  }

  function clock(seconds) {
    if (!data.start) return `${seconds.toFixed(1)} s`;
    const moment = new Date(Date.parse(data.start.slice(0, 23).replace(/Z?$/, "Z")) + seconds * 1000);
    return moment.toISOString().slice(view.to - view.from > 2 * 86400 ? 5 : 11, view.to - view.from < 20 ? 23 : 19).replace("T", " ");
  }

  function choose() {
    const query = element("query").value.toLowerCase();
    const number = (id) => { const text = element(id).value.trim(); return text === "" ? null : Number(text); };
    const device = number("device"), rank = number("rank"), pid = number("pid");
    lanes = data.lanes.filter((lane) =>
      (device === null || lane.device === device) && (rank === null || lane.rank === rank) && (pid === null || lane.pid === pid) &&
      (!element("troubled").checked || lane.marks.some((mark) => mark[0] !== "start" && mark[0] !== "end")) &&
      (!query || lane.label.toLowerCase().includes(query) ||
        lane.marks.some((mark) => `${mark[4] || ""} ${mark[5]}`.toLowerCase().includes(query))));
    element("shown").textContent = `${lanes.length} of ${data.lanes.length} cards`;
    draw();
  }

  function prepare(canvas, cssHeight) {
    const ratio = window.devicePixelRatio || 1, width = canvas.parentElement.clientWidth;
    canvas.style.height = `${cssHeight}px`;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(Math.min(cssHeight * ratio, 16000));
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, canvas.height / cssHeight, 0, 0);
    context.font = "12px system-ui, sans-serif";
    return [context, width];
  }

  function draw() {
    height = lanes.length <= 24 ? 26 : lanes.length <= 96 ? 16 : lanes.length <= 320 ? 10 : 7;
    const byCard = height >= 14;
    const [context, width] = prepare(lanesCanvas, Math.max(lanes.length * height, 40));
    left = byCard ? Math.min(240, Math.max(110, ...lanes.map((lane) => context.measureText(lane.label).width + 16))) : 130;
    const x = (seconds) => left + (seconds - view.from) / (view.to - view.from) * (width - left - 8);
    boxes = [];
    const ink = color("--ink"), soft = color("--soft"), rule = color("--rule"), lane0 = color("--lane"), red = color("--red");
    let host = null, band = 0;
    lanes.forEach((lane, index) => {
      const top = index * height;
      if (byCard || lane.host !== host) band += 1;
      host = lane.host;
      if (band % 2) { context.fillStyle = lane0; context.fillRect(0, top, width, height); }
      if (lane.suspect) {
        context.fillStyle = red; context.globalAlpha = .16; context.fillRect(0, top, width, height); context.globalAlpha = 1;
        context.fillRect(0, top, 4, height);
      }
    });
    host = null;
    lanes.forEach((lane, index) => {
      const top = index * height;
      context.textBaseline = "middle";
      if (byCard || lane.suspect) {
        context.font = `${lane.suspect ? "bold " : ""}${byCard ? 12 : 10}px system-ui, sans-serif`;
        context.fillStyle = lane.suspect ? red : ink;
        context.fillText(byCard ? lane.label : `${lane.host || ""} dev ${lane.device ?? "?"}`, 8, top + height / 2, left - 12);
      } else if (lane.host !== host && !lanes[index + 1]?.suspect) {
        context.font = "11px system-ui, sans-serif"; context.fillStyle = soft;
        context.fillText(lane.host || "?", 8, top + 7, left - 12);
      }
      host = lane.host;
      context.fillStyle = rule;
      const from = Math.max(x(lane.first), left), to = Math.min(x(lane.last), width - 4);
      if (to > from) context.fillRect(from, top + height / 2 - 1, to - from, 2);
      // Long marks first, so that moments stay visible on top of them.
      for (const mark of [...lane.marks].sort((one, other) => other[2] - other[1] - (one[2] - one[1]))) {
        if (hidden.has(mark[0])) continue;
        const begin = x(mark[1]), end = Math.max(x(mark[2]), begin + Math.max(3, Math.min(height * .55, 9)));
        if (end < left || begin > width) continue;
        context.fillStyle = KINDS[mark[0]][1];
        const inset = mark[0] === "start" || mark[0] === "end" ? .32 : end - begin > 12 ? .24 : .1;
        const at = Math.max(begin, left);
        context.fillRect(at, top + height * inset, Math.max(end - at, 2), height * (1 - 2 * inset));
        boxes.push([at, top, Math.max(end, at + 2), top + height, lane, mark]);
      }
    });
    if (byCard) drawLinks(context, x, red);
    drawAxis(soft, rule);
  }

  function drawLinks(context, x, red) {
    const place = new Map(lanes.map((lane, index) => [lane, index]));
    context.strokeStyle = red; context.fillStyle = red; context.lineWidth = 1.4;
    for (const [waiter, cause] of data.links) {
      const from = place.get(data.lanes[waiter]), to = place.get(data.lanes[cause]);
      if (from === undefined || to === undefined) continue;
      const marks = data.lanes[waiter].marks.filter((mark) => mark[0] !== "start" && mark[0] !== "end");
      const at = Math.min(Math.max(x(marks.length ? marks[0][1] : data.lanes[waiter].last), left + 6), lanesCanvas.clientWidth - 12);
      const y1 = from * height + height / 2, y2 = to * height + height / 2, bend = at + 14;
      context.beginPath(); context.moveTo(at, y1); context.bezierCurveTo(bend, y1, bend, y2, at, y2); context.stroke();
      context.beginPath(); context.moveTo(at - 5, y2); context.lineTo(at + 3, y2 - 4); context.lineTo(at + 3, y2 + 4); context.fill();
    }
  }

  function drawAxis(soft, rule) {
    const [context, width] = prepare(axisCanvas, 24);
    context.fillStyle = soft; context.textBaseline = "middle";
    const space = width - left - 8, wanted = Math.max(2, Math.floor(space / 130)), span = view.to - view.from;
    const steps = [.001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400];
    const step = steps.find((item) => span / item <= wanted) || 86400 * Math.ceil(span / wanted / 86400);
    // Ticks at round times of the clock, not of the run.
    const begin = data.start ? Date.parse(data.start.slice(0, 23).replace(/Z?$/, "Z")) / 1000 % 86400 : 0;
    for (let tick = Math.ceil((begin + view.from) / step) * step - begin; tick <= view.to; tick += step) {
      const at = left + (tick - view.from) / span * space;
      context.fillStyle = rule; context.fillRect(at, 16, 1, 8);
      context.fillStyle = soft;
      const text = clock(tick);
      context.fillText(text, Math.min(at + 3, width - context.measureText(text).width), 9);
    }
  }

  function describe(lane, mark) {
    const [kind, start, end, count, code, text, file, line] = mark;
    const times = count > 1 ? `, ${count} lines` : "", length = end > start ? ` for ${(end - start).toFixed(1)} s` : "";
    return `${lane.label}${lane.pid ? `, pid ${lane.pid}` : ""} · ${KINDS[kind][0]}${code ? ` ${code}` : ""} · ${clock(start)}${length}${times}\n` +
      `${text}${file ? `\n${file}${line ? `:${line}` : ""}` : ""}`;
  }

  const hit = (event) => {
    const frame = lanesCanvas.getBoundingClientRect(), px = event.clientX - frame.left, py = event.clientY - frame.top;
    for (let index = boxes.length - 1; index >= 0; index -= 1) {
      const box = boxes[index];
      if (px >= box[0] - 1 && px <= box[2] + 1 && py >= box[1] && py < box[3]) return box;
    }
    const lane = lanes[Math.floor(py / height)];
    return lane ? [0, 0, 0, 0, lane, null] : null;
  };
  let drag = null;
  lanesCanvas.addEventListener("pointerdown", (event) => { drag = { x: event.clientX, from: view.from, to: view.to, moved: false }; });
  window.addEventListener("pointerup", () => { drag = null; });
  lanesCanvas.addEventListener("pointermove", (event) => {
    if (drag && event.buttons) {
      const shift = (event.clientX - drag.x) / (lanesCanvas.clientWidth - left) * (drag.to - drag.from);
      drag.moved = drag.moved || Math.abs(event.clientX - drag.x) > 3;
      view = { from: drag.from - shift, to: drag.to - shift };
      draw();
      return;
    }
    if (kept) return;
    const found = hit(event);
    if (found) {
      detail.textContent = found[5] ? describe(found[4], found[5])
        : `${found[4].label}${found[4].hidden ? `, ${found[4].hidden} lines beyond those drawn` : ""}`;
    }
  });
  lanesCanvas.addEventListener("click", (event) => {
    const found = hit(event);
    kept = Boolean(found && found[5]);
    if (kept) detail.textContent = describe(found[4], found[5]);
  });
  lanesCanvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const frame = lanesCanvas.getBoundingClientRect();
    const share = Math.min(Math.max((event.clientX - frame.left - left) / (frame.width - left), 0), 1);
    const at = view.from + share * (view.to - view.from), factor = Math.exp(event.deltaY * .002);
    const span = Math.min(Math.max((view.to - view.from) * factor, 1e-3), 1.1 * total);
    view = { from: at - share * span, to: at + (1 - share) * span };
    draw();
  }, { passive: false });
  element("reset").addEventListener("click", () => { view = { from: -0.02 * total, to: 1.02 * total }; draw(); });
  for (const id of ["query", "device", "rank", "pid"]) element(id).addEventListener("input", choose);
  element("troubled").addEventListener("change", choose);
  window.addEventListener("resize", draw);
  choose();
  const suspect = lanes.findIndex((lane) => lane.suspect);
  if (suspect >= 0) element("scroll").scrollTop = suspect * height - element("scroll").clientHeight / 2;
})();
