// Whether the partner is there: a person's connection may be lost, and found again. Both are said, once.

const STAYS = 6000; // how long "is back" is shown

/** @param {HTMLElement} line */
export function presenceLine(line) {
  const words = line.dataset;
  /** @type {number | undefined} */
  let fade;

  // "" is for when nothing is known or nothing matters any more.
  return (/** @type {"lost" | "back" | ""} */ what) => {
    clearTimeout(fade);
    if (what === "back" && line.textContent !== words.lost) return;
    line.textContent = words[what] ?? "";
    if (what !== "back") return;
    fade = setTimeout(() => {
      line.textContent = "";
    }, STAYS);
  };
}
