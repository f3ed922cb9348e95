/* Clocks of deadlines: [data-deadline] holds the seconds that were left when the server answered. */
(() => {
  const began = new WeakMap();
  const two = (n) => String(n).padStart(2, "0");

  function words(seconds) {
    const s = Math.max(0, Math.round(seconds));
    const minutes = Math.floor(s / 60);
    if (s < 3600) return `${two(minutes)}:${two(s % 60)}`;
    return `${Math.floor(s / 3600)}:${two(minutes % 60)}:${two(s % 60)}`;
  }

  /* On a group's page: nothing is swapped under the reader's hands, they are told. */
  function passed() {
    const banner = document.getElementById("deadline-banner");
    if (!banner || !banner.hidden) return;
    banner.hidden = false;
    document.body.classList.add("is-past");
    window.gagarReview?.refresh();
  }

  /* Somebody decided: nothing of this group runs out any more. */
  function stop() {
    if (!document.querySelector("[data-news=decision]")) return;
    for (const clock of document.querySelectorAll("#group-head [data-deadline]")) {
      clock.removeAttribute("data-deadline");
      clock.classList.remove("is-near", "is-over");
      clock.textContent = "decided meanwhile";
    }
  }

  function tick() {
    stop();
    for (const clock of document.querySelectorAll("[data-deadline]")) {
      if (!began.has(clock)) began.set(clock, performance.now());
      const left = Number(clock.dataset.deadline) - (performance.now() - began.get(clock)) / 1000;
      const time = clock.querySelector(".time");
      if (time) time.textContent = words(left);
      clock.classList.toggle("is-near", left > 0 && left < 90);
      clock.classList.toggle("is-over", left <= 0);
      if (left <= 0) passed();
      const ring = clock.querySelector(".left");
      const total = Number(clock.dataset.total) || 0;
      if (ring && total) ring.setAttribute("stroke-dasharray", `${Math.max(0, Math.min(1, left / total)) * 37.7} 37.7`);
    }
  }
  setInterval(tick, 1000);
  document.addEventListener("DOMContentLoaded", tick);
  document.addEventListener("htmx:afterSettle", tick);
})();
