// The message box: keeps a draft, sends on Enter, says that somebody is typing, and shows why a message was refused.

import { find } from "./dom.js";

const PAUSE = 3000; // after this long without a key, one is no longer typing

export class Composer {
  #form;
  #box;
  #button;
  #error;
  #hint;
  #calm;
  #draft;
  #typing;
  /** @type {number | null} */
  #pause = null;
  #explains = false; // whether a reason stands in the hint's place

  /**
   * @param {HTMLFormElement} form
   * @param {import("./store.js").Store} draft
   * @param {{submit(text: string): void, typing(on: boolean): void, input(): void}} on
   */
  constructor(form, draft, on) {
    this.#form = form;
    this.#box = find("textarea", form, HTMLTextAreaElement);
    this.#button = find("button[type=submit]", form);
    this.#error = find(".error", form);
    this.#hint = find(".hint", form);
    this.#calm = [...this.#hint.childNodes];
    this.#draft = draft;
    this.#typing = on.typing;
    this.#box.value = draft.read() ?? this.#box.value;
    this.#grow();
    this.#box.addEventListener("input", () => this.#changed(on.input));
    this.#box.addEventListener("keydown", (event) => {
      // Safari ends a composition before the key that did it; only the old code, 229, still tells that it was part of one.
      if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
      event.preventDefault();
      form.requestSubmit();
    });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      on.submit(this.#box.value.trim());
    });
  }

  /**
   * Whether sending waits, and for what; null when it does not.
   *
   * @param {string | null} reason
   */
  wait(reason) {
    if (reason) {
      this.#button.setAttribute("aria-disabled", "true");
      if (this.#explains && this.#hint.textContent !== reason) this.#hint.textContent = reason;
    } else {
      this.#button.removeAttribute("aria-disabled");
      this.#hint.replaceChildren(...this.#calm);
      this.#explains = false;
    }
  }

  /**
   * Pressed too early: the reason takes the hint's place, and everything written stays.
   *
   * @param {string} reason
   */
  explain(reason) {
    this.#hint.textContent = reason;
    this.#explains = true;
    this.#box.focus();
  }

  clear() {
    this.#set("");
    this.#quiet();
    this.calm();
    this.#box.focus();
  }

  /**
   * A refused move: the text comes back, before anything written since, with the reason below.
   *
   * @param {string} message
   * @param {string | null} [text]
   */
  refuse(message, text = null) {
    if (text) this.#set([text, this.#box.value].filter(Boolean).join("\n"));
    this.#box.setAttribute("aria-invalid", "true");
    this.#error.textContent = "";
    this.#error.textContent = message;
    if (document.querySelector("dialog[open]")) return;
    this.#box.focus();
    this.#error.scrollIntoView({ block: "nearest" }); // on a phone it may lie below the screen
  }

  calm() {
    this.#box.removeAttribute("aria-invalid");
    this.#error.textContent = "";
  }

  /** @param {boolean} visible */
  show(visible) {
    this.#form.hidden = !visible;
    if (!visible) this.#quiet();
  }

  /** @param {() => void} also */
  #changed(also) {
    this.#draft.write(this.#box.value);
    this.#grow();
    this.calm();
    also();
    if (this.#pause === null) this.#typing(true);
    else clearTimeout(this.#pause);
    this.#pause = setTimeout(() => this.#quiet(), PAUSE);
  }

  #quiet() {
    if (this.#pause === null) return;
    clearTimeout(this.#pause);
    this.#pause = null;
    this.#typing(false);
  }

  /** @param {string} text */
  #set(text) {
    this.#box.value = text;
    this.#draft.write(text);
    this.#grow();
  }

  // For browsers in which a box does not grow with its content by itself.
  #grow() {
    if (CSS.supports("field-sizing", "content")) return;
    const lines = this.#box.value.split("\n").reduce((sum, line) => sum + 1 + Math.floor(line.length / 40), 0);
    this.#box.rows = Math.min(5, lines);
  }
}
