// The page that asks whether somebody is still there: it counts down, in the title as well, and calls.

import { clockTime } from "../clock.js";
import { find } from "../dom.js";
import { alarm } from "../sound.js";
import { ticking } from "../ticks.js";
import { t, tn } from "../words.js";

const CALLS = [60, 15]; // the seconds at which it calls again
const main = find("#main");

/** @param {number} seconds - in which the button counts */
function countDown(seconds) {
  const ends = performance.now() + seconds * 1000;
  const shown = find("[data-countdown]");
  const aloud = find("[data-aloud]");
  const title = document.title;
  let called = Number.POSITIVE_INFINITY;
  const stop = ticking(count);

  function count() {
    const left = Math.max(0, Math.ceil((ends - performance.now()) / 1000));
    shown.textContent = clockTime(left);
    const warned = t("%(time)s left", { time: clockTime(left) });
    document.title = `${warned}: ${title}`;
    const call = CALLS.filter((each) => left <= each).at(-1) ?? Number.POSITIVE_INFINITY;
    if (call < called && left > 0) {
      called = call;
      aloud.textContent = tn("%(num)s second left.", "%(num)s seconds left.", left);
      alarm();
    }
    if (left > 0) return;
    stop();
    setTimeout(() => location.reload(), 1500); // a moment later than shown, as the server has it
  }

  count();
  alarm();
}

if (main.dataset.left) countDown(Number(main.dataset.left));
// It may have been answered elsewhere, or be too late, when somebody looks at it again.
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) location.reload();
});
