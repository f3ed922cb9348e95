/* Seconds that a group's page was in front of somebody who did something in the last minute; every form that is sent
   carries them. They are counted per group and tab, also over reloads. */
(() => {
  const IDLE_MS = 60_000;
  const key = `attention:${location.pathname}`;
  let seconds = Number(sessionStorage.getItem(key)) || 0;
  let touched = performance.now();
  for (const kind of ["pointermove", "pointerdown", "keydown", "wheel", "touchstart"]) {
    document.addEventListener(kind, () => { touched = performance.now(); }, { passive: true });
  }
  setInterval(() => {
    if (document.visibilityState !== "visible" || performance.now() - touched > IDLE_MS) return;
    seconds += 1;
    sessionStorage.setItem(key, String(seconds));
  }, 1000);
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.method !== "post" || form.querySelector("[name=attention_s]")) return;
    form.append(Object.assign(document.createElement("input"), { type: "hidden", name: "attention_s", value: String(seconds) }));
  });
})();
