// How a person writes a move: from when the partner's move is on the page until the own one is sent, by the browser's
// monotonic clock. docs/protocol.md says what each figure means. Knows no page: what happens there is told to it.

const PAUSE = 2000; // milliseconds without a change after which somebody is no longer typing
const KEYS = new Set(["Backspace", "Delete", "Enter"]); // beside those that write a character

/** @typedef {Record<string, number>} Timing */

export class MoveTiming {
  #now;
  /** @type {number | null} the ply that is to be answered */
  #ply = null;
  #shown = 0;
  /** @type {number | null} since when the page cannot be seen */
  #hiddenSince = null;
  /** @type {{type: string, length: number, selected: number} | null} a change that is about to happen */
  #about = null;
  /** @type {number | null} */
  #changed = null;
  /** @type {number | null} */
  #first = null;
  #typing = 0;
  #hidden = 0;
  /** @type {Record<string, number>} */
  #counts = {};

  /** @param {() => number} now - milliseconds */
  constructor(now = () => performance.now()) {
    this.#now = now;
  }

  /**
   * It is this seat's turn, and what is to be answered is on the page. Said again of the same turn it changes nothing.
   *
   * @param {number} ply
   */
  show(ply) {
    if (ply === this.#ply) return;
    this.#ply = ply;
    this.#shown = this.#now();
    this.#hidden = 0;
    if (this.#hiddenSince !== null) this.#hiddenSince = this.#shown;
    this.#first = null;
    const { typed = 0, pasted = 0, dropped = 0, dictated = 0, replaced = 0, deleted = 0 } = this.#counts;
    this.#count("ahead", Math.max(0, typed + pasted + dropped + dictated + replaced - deleted));
  }

  /**
   * The message box is about to change.
   *
   * @param {string} type - the event's `inputType`
   * @param {number} length - of what is in the box
   * @param {number} selected - how much of that is to be replaced
   */
  before(type, length, selected) {
    this.#about = { type, length, selected };
    if (this.#first === null && this.#ply !== null) this.#first = this.#now();
  }

  /** @param {number} length - of what is in the box after the change */
  after(length) {
    const now = this.#now();
    if (this.#changed !== null && now - this.#changed <= PAUSE) this.#typing += now - this.#changed;
    this.#changed = now;
    const { type, length: before, selected } = this.#about ?? { type: "insertText", length, selected: 0 };
    this.#about = null;
    // A composition replaces what it has written so far, which is no selection.
    const grown = length - before + (type === "insertCompositionText" ? 0 : selected);
    if (type === "insertFromPaste") this.#count("pastes", 1);
    if (type.startsWith("delete") || grown < 0) this.#count("deleted", Math.max(0, before - length));
    else this.#count(kindOf(type), grown);
  }

  /** @param {string} key - the event's `key` */
  key(key) {
    if (key.length === 1 || KEYS.has(key)) this.#count("keys", 1);
  }

  /** @param {boolean} hidden - whether the page has just been hidden, or can be seen again */
  see(hidden) {
    if (hidden === (this.#hiddenSince !== null)) return;
    if (hidden) {
      this.#hiddenSince = this.#now();
      this.#count("hides", 1);
    } else {
      this.#hidden += this.#now() - (this.#hiddenSince ?? 0);
      this.#hiddenSince = null;
    }
  }

  /**
   * Text stands in the box that nobody has just written: of a page that was loaded again, or of a refused move.
   *
   * @param {number} characters
   */
  restore(characters) {
    this.#count("restored", characters);
  }

  /**
   * What was measured of the move that is sent now. The next one begins at nothing.
   *
   * @returns {Timing}
   */
  take() {
    const now = this.#now();
    const hidden = this.#hidden + (this.#hiddenSince === null ? 0 : now - this.#hiddenSince);
    /** @type {Timing} */
    const timing = { sent: now - this.#shown, typing: this.#typing, hidden, ...this.#counts };
    if (this.#first !== null) timing.first_input = this.#first - this.#shown;
    this.#first = null;
    this.#changed = null;
    this.#typing = 0;
    this.#counts = {};
    return Object.fromEntries(Object.entries(timing).map(([name, value]) => [name, Math.max(0, Math.round(value * 10) / 10)]));
  }

  /**
   * @param {string} name
   * @param {number} more
   */
  #count(name, more) {
    if (more) this.#counts[name] = (this.#counts[name] ?? 0) + more;
  }
}

/**
 * What a change counts as.
 *
 * @param {string} type - the event's `inputType`
 */
function kindOf(type) {
  if (type === "insertFromPaste") return "pasted";
  if (type === "insertFromDrop") return "dropped";
  if (type === "insertReplacementText") return "replaced"; // by autocorrect or a spelling checker
  return /dictation/i.test(type) ? "dictated" : "typed";
}

/**
 * Measures a message box.
 *
 * @param {HTMLTextAreaElement} box
 */
export function measured(box) {
  const timing = new MoveTiming();
  timing.restore(box.value.length);
  timing.see(document.hidden);
  box.addEventListener("beforeinput", ({ inputType }) =>
    timing.before(inputType, box.value.length, box.selectionEnd - box.selectionStart),
  );
  // The composer hears of the same change later; what it does to the box is no writing.
  box.addEventListener("input", () => timing.after(box.value.length), { capture: true });
  box.addEventListener("keydown", ({ key }) => timing.key(key));
  document.addEventListener("visibilitychange", () => timing.see(document.hidden));
  return timing;
}
