// The turn line: whose turn it is, what to do, how long; and the title of the tab.

import { tn } from "./words.js";

const SPOKEN = [60, 30, 10]; // the seconds at which the clock says something

export class TurnLine {
  #line;
  #now;
  #more;
  #aloud; // the seconds, for those who do not see the clock
  #clock;
  #time;
  #title;
  #tick = null;
  #shown = null; // the clock as it came
  #deadline = null;
  #ends = 0; // when it runs out, in the page's own time
  #spoken = null;

  constructor(line, title) {
    this.#line = line;
    this.#now = line.querySelector("#turn-now");
    this.#more = line.querySelector("#turn-more");
    this.#aloud = line.querySelector("#turn-time");
    this.#clock = line.querySelector("#clock");
    this.#time = this.#clock.querySelector("time");
    this.#title = title;
  }

  // tone: "" (you), partner, lost or over; words: [what has happened, what to do]; tab: the title's first words.
  show(tone, [now, more], tab) {
    this.#line.className = tone ? `turn turn-${tone}` : "turn";
    this.#say(now);
    if (this.#more.textContent !== more) this.#more.textContent = more;
    this.#more.classList.toggle("wide-only", tone === "" || tone === "partner");
    document.title = `${tab}: ${this.#title}`;
  }

  // clock: the view's, or null. What is left was true when the view came; this machine's own time may be wrong.
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

  // A status line is read out when its text changes, so it only changes when there is something to say.
  #say(text) {
    if (this.#now.textContent !== text) this.#now.textContent = text;
  }
}
