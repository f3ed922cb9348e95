/* Where alerts fired, on the charts of the monitor: a dashed line with a triangle on top, and a link under the panel.
   monitor.js hands over what series.json says (marks: [{step, rule, state, title, panel, is_danger, url}]). */
window.gagarMarks = (() => {
  const known = new Map(); // url -> mark: an alert that ends changes its own mark
  const probe = document.createElement("i");

  function colour(mark) {
    if (!probe.isConnected) document.body.append(probe);
    probe.style.color = `var(--${mark.state === "resolved" ? "ink-3" : mark.is_danger ? "danger" : "warn"})`;
    return getComputedStyle(probe).color;
  }

  const of = (figure) => [...known.values()].filter((mark) => mark.panel === figure.dataset.panel);

  function keep(marks) {
    for (const mark of marks ?? []) known.set(mark.url, mark);
    for (const figure of document.querySelectorAll("[data-panel]")) list(figure);
  }

  function list(figure) {
    const mine = of(figure).sort((a, b) => a.step - b.step).slice(-3);
    figure.querySelector(".chart-marks")?.remove();
    if (!mine.length) return;
    const box = Object.assign(document.createElement("div"), { className: "chart-marks" });
    for (const mark of mine) {
      const words = `▲ step ${mark.step}: ${mark.title}, ${mark.state}`;
      const link = Object.assign(document.createElement("a"), { href: mark.url, textContent: words });
      link.className = mark.state === "resolved" ? "quiet" : mark.is_danger ? "is-danger" : "";
      box.append(link);
    }
    figure.append(box);
  }

  function draw(u, figure) {
    const { ctx, bbox } = u;
    const { min, max } = u.scales.x;
    const size = 5 * devicePixelRatio;
    ctx.save();
    for (const mark of of(figure)) {
      if (mark.step < min || mark.step > max) continue;
      const x = Math.round(u.valToPos(mark.step, "x", true));
      ctx.strokeStyle = ctx.fillStyle = colour(mark);
      ctx.lineWidth = devicePixelRatio;
      ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      ctx.beginPath();
      ctx.moveTo(x - size, bbox.top);
      ctx.lineTo(x + size, bbox.top);
      ctx.lineTo(x, bbox.top + size * 1.4);
      ctx.fill();
    }
    ctx.restore();
  }

  return { keep, draw };
})();
