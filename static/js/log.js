// The conversation. It rests at its newest line; a reader who has scrolled up is left there and told.

import { find, findAll } from "./dom.js";
import { keyOf } from "./state.js";
import { localTime } from "./times.js";
import { visible } from "./visible.js";
import { t } from "./words.js";

const NEAR = 48; // pixels from the newest line that still count as reading it

/** @typedef {import("./state.js").Entry} Entry */

export class Log {
  #box;
  #list;
  #more;
  /** @type {Map<string, HTMLElement>} */
  #items = new Map();
  #words;
  #again;

  /**
   * @param {HTMLElement} box
   * @param {HTMLElement} more
   * @param {(entry: Entry) => {text: string, aside: boolean}} words - how the game puts an entry
   * @param {() => void} again - sends an unsent move once more
   */
  constructor(box, more, words, again) {
    this.#box = box;
    this.#list = find("ol", box);
    this.#more = more;
    this.#words = words;
    this.#again = again;
    for (const item of findAll("[data-key]", this.#list)) this.#items.set(item.dataset.key ?? "", item);
    box.addEventListener("scroll", () => {
      if (this.#atEnd()) more.hidden = true;
    });
    more.addEventListener("click", () => {
      box.scrollTop = 0;
      more.hidden = true;
      box.focus();
    });
  }

  /** @param {Entry[]} transcript */
  render(transcript) {
    const here = this.#hold();
    let news = false;
    for (const entry of transcript) {
      const key = keyOf(entry);
      const known = this.#items.get(key);
      if (known) this.#fill(known, entry);
      else {
        this.#append(key, entry);
        news ||= entry.by !== "you";
      }
    }
    this.#keep(here, news);
  }

  /**
   * Shows a move of one's own on its way.
   *
   * @param {import("./state.js").Move} move
   * @param {"sending" | "unsent"} state
   */
  pending(move, state) {
    /** @type {Entry} */
    const entry = { by: "you", kind: move.kind, text: move.text, at: move.at, ply: move.ply };
    const item = this.#items.get("pending") ?? this.#append("pending", entry);
    item.classList.toggle("sending", state === "sending");
    item.classList.toggle("unsent", state === "unsent");
    item.querySelector(".way")?.remove();
    if (state === "unsent") {
      const way = document.createElement("span");
      way.className = "way";
      const button = document.createElement("button");
      button.type = "button";
      button.className = "button";
      button.textContent = t("Send again");
      button.addEventListener("click", this.#again);
      way.append(t("Not sent yet."), " ", button);
      item.append(way);
    }
    this.#box.scrollTop = 0;
  }

  /**
   * The move on its way was accepted: its line becomes the entry's.
   *
   * @param {number} ply
   */
  settle(ply) {
    const item = this.#items.get("pending");
    if (!item) return;
    this.#items.delete("pending");
    item.classList.remove("sending", "unsent");
    item.querySelector(".way")?.remove();
    const key = String(ply);
    if (this.#items.has(key)) {
      item.remove();
      return;
    }
    item.dataset.key = key;
    this.#items.set(key, item);
  }

  drop() {
    this.#items.get("pending")?.remove();
    this.#items.delete("pending");
  }

  /**
   * @param {string} key
   * @param {Entry} entry
   */
  #append(key, entry) {
    const item = document.createElement("li");
    item.dataset.key = key;
    this.#fill(item, entry);
    this.#list.append(item);
    this.#items.set(key, item);
    return item;
  }

  /**
   * @param {HTMLElement} item
   * @param {Entry} entry
   */
  #fill(item, entry) {
    const { text: words, aside } = this.#words(entry);
    const text = visible(words);
    const kind = aside ? "by-table" : entry.by === "you" ? "message by-you" : "message";
    if (item.querySelector(".text")?.textContent !== text || !item.className.startsWith(kind)) {
      item.className = kind;
      const said = document.createElement("span");
      said.className = "text";
      said.dir = "auto";
      if (!aside) said.lang = "en"; // people and models play in English, whatever the page speaks
      said.textContent = text;
      item.replaceChildren(...(aside ? [] : [this.#who(entry)]), said);
    }
    const time = item.querySelector("time");
    if (time && entry.at) {
      time.dateTime = entry.at;
      const shown = localTime(entry.at);
      if (time.textContent !== shown) time.textContent = shown;
    }
  }

  /** @param {Entry} entry */
  #who(entry) {
    const who = document.createElement("span");
    who.className = "who";
    who.append(entry.by === "you" ? t("You") : t("Partner"), " ", document.createElement("time"));
    return who;
  }

  #atEnd() {
    return this.#box.scrollTop > -NEAR; // the box runs from its end upwards, so its end is 0
  }

  // Remembers the line that is being read, when it is not the newest.
  #hold() {
    if (this.#atEnd()) return null;
    const top = this.#box.getBoundingClientRect().top;
    const line = [...this.#list.children].find((item) => item.getBoundingClientRect().bottom > top);
    return line && { line, top: line.getBoundingClientRect().top };
  }

  /**
   * @param {{line: Element, top: number} | null | undefined} here
   * @param {boolean} news
   */
  #keep(here, news) {
    if (!here) return;
    this.#box.scrollTop += here.line.getBoundingClientRect().top - here.top;
    if (news) this.#more.hidden = false;
  }
}
