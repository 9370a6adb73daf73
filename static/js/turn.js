// The turn line: whose turn it is, what to do, how long; and the title of the tab.

const SPOKEN = [60, 30, 10]; // the seconds at which the clock says something

export class TurnLine {
  #line;
  #now;
  #more;
  #clock;
  #time;
  #title;
  #tick = null;
  #deadline = null;
  #spoken = null;

  constructor(line, title) {
    this.#line = line;
    this.#now = line.querySelector("#turn-now");
    this.#more = line.querySelector("#turn-more");
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

  // deadline: an ISO time, or null for no clock.
  until(deadline) {
    if (deadline === this.#deadline) return;
    this.#deadline = deadline;
    this.#spoken = null;
    clearInterval(this.#tick);
    this.#clock.hidden = !deadline;
    if (!deadline) return;
    this.#tick = setInterval(() => this.#count(), 1000);
    this.#count();
  }

  #count() {
    const left = Math.max(0, Math.round((Date.parse(this.#deadline) - Date.now()) / 1000));
    this.#time.textContent = `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")}`;
    const mark = SPOKEN.filter((seconds) => left <= seconds).at(-1);
    if (mark && left > 0 && mark !== this.#spoken) {
      this.#spoken = mark;
      this.#say(`${this.#now.textContent.replace(/ \d+ seconds left\.$/, "")} ${mark} seconds left.`);
    }
  }

  // A status line is read out when its text changes, so it only changes when there is something to say.
  #say(text) {
    if (this.#now.textContent !== text) this.#now.textContent = text;
  }
}
