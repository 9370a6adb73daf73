// The turn line: whose turn it is, what to do, how long; and the title of the tab.

import { find } from "./dom.js";
import { tn } from "./words.js";

const SPOKEN = [60, 30, 10]; // the seconds at which the clock says something

/** @typedef {import("./state.js").Clock} Clock */

export class TurnLine {
  #line;
  #now;
  #more;
  #aloud; // the seconds, for those who do not see the clock
  #clock;
  #time;
  #title;
  /** @type {number | undefined} */
  #tick;
  /** @type {Clock | null} the clock as it came */
  #shown = null;
  /** @type {string | undefined} */
  #deadline;
  #ends = 0; // when it runs out, in the page's own time
  /** @type {number | null} */
  #spoken = null;

  /**
   * @param {HTMLElement} line
   * @param {string} title - of the tab
   */
  constructor(line, title) {
    this.#line = line;
    this.#now = find("#turn-now", line);
    this.#more = find("#turn-more", line);
    this.#aloud = find("#turn-time", line);
    this.#clock = find("#clock", line);
    this.#time = find("time", this.#clock);
    this.#title = title;
  }

  /**
   * @param {"" | "partner" | "lost" | "over"} tone - "" is this seat's own turn
   * @param {string[]} words - what has happened, and what to do
   * @param {string} tab - the title's first words
   */
  show(tone, [now, more], tab) {
    this.#line.className = tone ? `turn turn-${tone}` : "turn";
    this.#say(now);
    if (this.#more.textContent !== more) this.#more.textContent = more;
    this.#more.classList.toggle("wide-only", tone === "" || tone === "partner");
    document.title = `${tab}: ${this.#title}`;
  }

  /**
   * Counts down. What is left was true when the view came; this machine's own time may be wrong.
   *
   * @param {Clock | null} clock - the view's
   */
  until(clock) {
    if (clock === this.#shown) return;
    this.#shown = clock;
    this.#ends = performance.now() + (clock?.left ?? 0) * 1000;
    if (clock?.deadline !== this.#deadline) {
      this.#spoken = null;
      this.#aloud.textContent = "";
    }
    this.#deadline = clock?.deadline;
    this.#clock.hidden = !clock;
    this.#clock.classList.toggle("of-match", clock?.of === "match");
    clearInterval(this.#tick);
    if (!clock) return;
    this.#tick = setInterval(() => this.#count(), 500);
    this.#count();
  }

  #count() {
    const left = Math.max(0, Math.ceil((this.#ends - performance.now()) / 1000));
    this.#time.textContent = `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")}`;
    const mark = SPOKEN.filter((seconds) => left <= seconds).at(-1);
    if (mark && left > 0 && mark !== this.#spoken) {
      this.#spoken = mark;
      this.#aloud.textContent = tn("%(num)s second left.", "%(num)s seconds left.", mark);
    }
  }

  /**
   * A status line is read out when its text changes, so it only changes when there is something to say.
   *
   * @param {string} text
   */
  #say(text) {
    if (this.#now.textContent !== text) this.#now.textContent = text;
  }
}
