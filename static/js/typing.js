// "Your partner is typing": shown whenever they do, read out at most once a turn. Of a partner who cannot begin yet
// something else is said, which the server has written at the line.

import { t } from "./words.js";

const FORGET = 20000; // in case the word that they have stopped gets lost

/** @param {HTMLElement} line */
export function typingLine(line) {
  /** @type {number | undefined} the ply in which it was read out last */
  let readIn;
  /** @type {number | undefined} */
  let forget;

  /**
   * @param {boolean} on
   * @param {number} [ply]
   * @param {boolean} [ready]
   */
  function show(on, ply, ready = true) {
    clearTimeout(forget);
    line.replaceChildren();
    if (!on) return;
    if (!ready) {
      line.textContent = line.dataset.notReady ?? "";
      return;
    }
    forget = setTimeout(() => line.replaceChildren(), FORGET);
    const dots = document.createElement("span");
    dots.className = "dots";
    dots.ariaHidden = "true";
    dots.append(...["i", "i", "i"].map((name) => document.createElement(name)));
    const words = document.createElement("span");
    words.textContent = t("Your partner is typing");
    if (readIn === ply) words.ariaHidden = "true";
    readIn = ply;
    line.append(dots, words);
  }

  return show;
}
