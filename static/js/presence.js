// Whether the partner is there: a person's connection may be lost, and found again. Both are said, once.

const STAYS = 6000; // how long "is back" is shown

export function presenceLine(line) {
  const words = line.dataset;
  let fade = null;

  // what: lost, back, or "" when nothing is known or nothing matters any more.
  return (what) => {
    clearTimeout(fade);
    if (what === "back" && line.textContent !== words.lost) return;
    line.textContent = words[what] ?? "";
    if (what === "back") fade = setTimeout(() => (line.textContent = ""), STAYS);
  };
}
