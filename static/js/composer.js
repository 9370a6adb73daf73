// The message box: keeps a draft, sends on Enter, says that somebody is typing, and shows why a message was refused.

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
  #pause = null;
  #explains = false; // whether a reason stands in the hint's place

  // draft: {read, write}; on: {submit(text), typing(on), input()}.
  constructor(form, draft, on) {
    this.#form = form;
    this.#box = form.querySelector("textarea");
    this.#button = form.querySelector("button[type=submit]");
    this.#error = form.querySelector(".error");
    this.#hint = form.querySelector(".hint");
    this.#calm = [...this.#hint.childNodes];
    this.#draft = draft;
    this.#typing = on.typing;
    this.#box.value = draft.read() ?? this.#box.value;
    this.#grow();
    this.#box.addEventListener("input", () => this.#changed(on.input));
    this.#box.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      form.requestSubmit();
    });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      on.submit(this.#box.value.trim());
    });
  }

  // Whether sending waits, and for what; null when it does not.
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

  // Pressed too early: the reason takes the hint's place, and everything written stays.
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

  // A refused move: the text comes back, before anything written since, with the reason below.
  refuse(message, text = null) {
    if (text) this.#set([text, this.#box.value].filter(Boolean).join("\n"));
    this.#box.setAttribute("aria-invalid", "true");
    this.#error.textContent = "";
    this.#error.textContent = message;
    if (!document.querySelector("dialog[open]")) this.#box.focus();
  }

  calm() {
    this.#box.removeAttribute("aria-invalid");
    this.#error.textContent = "";
  }

  show(visible) {
    this.#form.hidden = !visible;
    if (!visible) this.#quiet();
  }

  #changed(also) {
    this.#draft.write(this.#box.value);
    this.#grow();
    this.calm();
    also();
    if (this.#pause === null) this.#typing(true);
    clearTimeout(this.#pause);
    this.#pause = setTimeout(() => this.#quiet(), PAUSE);
  }

  #quiet() {
    if (this.#pause === null) return;
    clearTimeout(this.#pause);
    this.#pause = null;
    this.#typing(false);
  }

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
