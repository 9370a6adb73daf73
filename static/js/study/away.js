// A page that is left open ends the study after a long time: before it does, it calls, and shows what to press.

import { clockTime } from "../clock.js";
import { find } from "../dom.js";
import { alarm } from "../sound.js";
import { ticking } from "../ticks.js";
import { t } from "../words.js";

const WARNS = 15 * 60; // seconds before the end

/**
 * @param {HTMLElement} note - that is shown then
 * @param {number} seconds - after which the study ends if nothing comes
 */
export function warnOfSilence(note, seconds) {
  const ends = Date.now() + seconds * 1000; // time goes on while the machine sleeps
  const shown = find("time", note);
  const title = document.title;
  const stop = ticking(() => {
    const left = Math.max(0, Math.ceil((ends - Date.now()) / 1000));
    if (left > WARNS) return;
    if (note.hidden) {
      note.hidden = false;
      alarm();
    }
    shown.textContent = clockTime(left);
    const warned = t("%(time)s left", { time: clockTime(left) });
    document.title = `${warned}: ${title}`;
    if (left > 0) return;
    stop();
    setTimeout(() => location.reload(), 1500);
  });
}
