// The turn line: whose turn it is, what to do, how long; the title of the tab; and warnings before a clock runs out.

import { clockTime, warning } from "./clock.js";
import { find } from "./dom.js";
import { ticking } from "./ticks.js";
import { t, tn } from "./words.js";

const HALF = 0.5;
const SPOKEN = [60, 30, 10]; // the seconds at which the clock says something

/** @typedef {import("./state.js").Clock} Clock */

export class TurnLine {
  #line;
  #now;
  #more;
  #aloud; // the seconds, for those who do not see the clock
  #alarm; // the same of the last warning, which interrupts what is being read
  #clock;
  #time;
  #title;
  #warned;
  #tab = ""; // the first words of the title
  #warnsAfter;
  #mine = false; // whether the clock runs against this seat
  /** @type {"" | "soon" | "last"} */
  #stage = "";
  #stop = () => {};
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
   * @param {() => void} warned - a clock has begun to warn
   * @param {number} warnsAfter - the share of a turn that is over when its clock first warns
   */
  constructor(line, title, warned, warnsAfter) {
    this.#line = line;
    this.#now = find("#turn-now", line);
    this.#more = find("#turn-more", line);
    this.#aloud = find("#turn-time", line);
    this.#alarm = find("#turn-alarm", line);
    this.#warned = warned;
    this.#warnsAfter = warnsAfter;
    this.#clock = find("#clock", line);
    this.#time = find("time", this.#clock);
    this.#title = title;
  }

  /**
   * @param {"" | "partner" | "soon" | "last" | "lost" | "over"} tone - "" is this seat's own turn
   * @param {string[]} words - what has happened, and what to do
   * @param {string} tab - the title's first words
   */
  show(tone, [now, more], tab) {
    this.#line.className = tone ? `turn turn-${tone}` : "turn";
    this.#say(now);
    if (this.#more.textContent !== more) this.#more.textContent = more;
    this.#more.classList.toggle("wide-only", tone === "" || tone === "partner");
    this.#tab = tab;
    this.#entitle();
  }

  /** What the clock warns of now: half of it is over ("soon"), or nearly all ("last"). */
  get stage() {
    return this.#stage;
  }

  /**
   * Counts down. What is left was true when the view came; this machine's own time may be wrong.
   *
   * @param {Clock | null} clock - the view's
   * @param {boolean} mine - whether it runs against this seat
   */
  until(clock, mine) {
    if (clock === this.#shown && mine === this.#mine) return;
    this.#shown = clock;
    this.#mine = mine;
    this.#ends = performance.now() + (clock?.left ?? 0) * 1000;
    if (clock?.deadline !== this.#deadline) {
      this.#spoken = null;
      this.#aloud.textContent = "";
      this.#alarm.textContent = "";
      this.#stage = "";
    }
    this.#deadline = clock?.deadline;
    this.#clock.hidden = !clock;
    this.#clock.classList.toggle("of-match", clock?.of === "match");
    this.#stop();
    this.#stop = () => {};
    if (!clock) {
      this.#stage = "";
      return;
    }
    this.#stop = ticking(() => this.#count());
    this.#count();
  }

  #count() {
    const left = Math.max(0, Math.ceil((this.#ends - performance.now()) / 1000));
    this.#time.textContent = clockTime(left);
    this.#warn(left);
    const mark = SPOKEN.filter((seconds) => left <= seconds).at(-1);
    if (mark && left > 0 && mark !== this.#spoken) {
      this.#spoken = mark;
      this.#aloud.textContent = tn("%(num)s second left.", "%(num)s seconds left.", mark);
    }
  }

  /** @param {number} left - seconds */
  #warn(left) {
    const clock = this.#shown;
    const stage = clock && this.#mine ? warning(left, clock.total ?? left, clock.of === "match" ? HALF : this.#warnsAfter) : "";
    if (stage !== this.#stage) {
      this.#stage = stage;
      const isHalf = clock?.of === "match" || this.#warnsAfter === HALF;
      if (stage === "soon" && isHalf) this.#aloud.textContent = tn("Half of the time is over: %(num)s second left.", "Half of the time is over: %(num)s seconds left.", left);
      if (stage === "soon" && !isHalf) this.#aloud.textContent = tn("%(num)s second left.", "%(num)s seconds left.", left);
      if (stage === "last") this.#alarm.textContent = tn("%(num)s second left.", "%(num)s seconds left.", left);
      if (stage) this.#spoken = SPOKEN.filter((seconds) => left <= seconds).at(-1) ?? null; // said by the warning
      if (stage && left > 0) this.#warned();
    }
    this.#entitle();
  }

  #entitle() {
    const left = t("%(time)s left", { time: this.#time.textContent ?? "" });
    const title = [...(this.#stage ? [left] : []), this.#tab, this.#title].join(": ");
    if (document.title !== title) document.title = title;
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
