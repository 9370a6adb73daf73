// Adversarial Taboo: the turns left, the seeker's one guess, and a word of warning to the one who holds the word.

import { ask } from "../dialog.js";
import { find } from "../dom.js";
import { t } from "../words.js";

const ONE_WORD = /^\p{L}[\p{L}\p{M}]*(?:[-’']{1,2}[\p{L}\p{M}]+)*$/u;
const ENDINGS = "(?:s|es|d|ed|r|er|st|est|n|en|ing|ings|ers|[’']s|s[’'])?";

/**
 * Letters as they sound to the judge: no accents, no case, no characters that cannot be seen.
 *
 * @param {string} text
 */
function plain(text) {
  return text.normalize("NFKD").replace(/[\p{M}\p{Cf}]/gu, "").toLowerCase();
}

/** @param {string} word */
function escaped(word) {
  return word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

/**
 * The word, or what looks like a form of it, in a text; null if there is none. The server's judge knows better and
 * has the last word: this only asks to think again.
 *
 * @param {string} word
 * @param {string} text
 */
export function seemsToSay(word, text) {
  const bare = plain(word);
  const stems = [escaped(bare)];
  if (bare.endsWith("e")) stems.push(escaped(bare.slice(0, -1)));
  if (bare.endsWith("y")) stems.push(`${escaped(bare.slice(0, -1))}i`);
  if (/[^aeiou][aeiou][bdgklmnprt]$/.test(bare)) stems.push(escaped(bare + bare.at(-1)));
  const whole = (/** @type {string} */ stem, /** @type {string} */ endings) => new RegExp(`(?<![\\p{L}\\p{N}])${stem}${endings}(?![\\p{L}\\p{N}])`, "u");
  const [exact, ...bent] = stems;
  const spelled = [...bare].map(escaped).join("[\\s.\\-_*]+");
  const found =
    whole(exact, ENDINGS).exec(plain(text)) ??
    bent.map((stem) => whole(stem, ENDINGS.slice(0, -1)).exec(plain(text))).find(Boolean) ??
    whole(spelled, "").exec(plain(text));
  return found?.[0] ?? null;
}

/**
 * What was written as a guess, without the quotes and the full stop that people put around it.
 *
 * @param {string} text
 */
export function asGuess(text) {
  return text.replace(/^[\s"'“”„‘’«»`]+|[\s"'“”„‘’«»`.!?]+$/g, "");
}

/** @param {import("../match.js").Page} page */
export default function taboo(page) {
  const form = document.getElementById("guess-form");
  /** @type {string | undefined} */
  const word = page.view().secret.word;

  /** @param {import("../state.js").View} view */
  function update(view) {
    const { turns_left: left, max_turns: most } = view.facts;
    const line = t("%(left)s of your %(most)s turns left", { left, most });
    const count = find("#turns-left");
    if (count.textContent !== line) count.textContent = line;
    for (const [index, peg] of [...find("#pegs").children].entries()) peg.classList.toggle("used", index < most - left);
    if (view.status === "over") reveal(view.facts.word ?? word);
    if (!form) return;
    const button = find("[type=submit]", form);
    if (page.waiting("declaration") === null) button.removeAttribute("aria-disabled");
    else button.setAttribute("aria-disabled", "true");
  }

  /**
   * At the end there is nothing left to do, and the seeker's card is turned over if the server tells the word.
   *
   * @param {string | undefined} found
   */
  function reveal(found) {
    const card = find("#word-card");
    find("#board-task").hidden = true;
    find("#board-title").textContent = found ? t("The word is out.") : t("The word stays a secret.");
    if (!found) return;
    find(".label", card).textContent = t("The word was");
    if (!card.classList.contains("word-card-back")) return;
    card.classList.remove("word-card-back");
    const shown = document.createElement("p");
    shown.className = found.length > 8 ? "word word-long" : "word";
    shown.lang = "en";
    shown.textContent = found;
    card.append(shown);
  }

  /** @param {string} text */
  function warn(text) {
    const found = word && seemsToSay(word, text);
    if (found) {
      return t("That seems to have “%(word)s” in it. If you send it, you may lose. Send it again if you are sure.", { word: found });
    }
    if (word && /\bi know the word\b/i.test(text)) return t("Only your partner may guess. If you send this, you may lose.");
    return null;
  }

  if (form) {
    const box = find("input", form, HTMLInputElement);
    const error = find(".error", form);
    const complain = (/** @type {string} */ reason) => {
      error.textContent = reason;
      box.setAttribute("aria-invalid", "true");
      box.focus();
      error.scrollIntoView({ block: "nearest" }); // on a phone it may lie below the screen
    };
    box.addEventListener("input", () => {
      error.textContent = "";
      box.removeAttribute("aria-invalid");
    });
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const guess = asGuess(box.value);
      const reason = page.waiting("declaration");
      if (reason) return complain(t("Please keep your guess until it is your turn."));
      if (!guess) return complain(t("Please write your guess first."));
      if (!ONE_WORD.test(guess)) return complain(t("Your guess is one word, in letters. Please write that word alone."));
      find("#guess-words").textContent = t(
        "Your guess is “%(word)s”. If it is right you win, if it is wrong you lose, and the game ends either way.",
        { word: guess },
      );
      const sure = await ask(find("#guess-dialog", document, HTMLDialogElement));
      if (sure && page.waiting("declaration") === null) page.send("declaration", guess);
      return update(page.view());
    });
  }

  return {
    compose: (/** @type {string} */ kind, /** @type {string} */ body) => (kind === "declaration" ? `I know the word! It is "${body}"!` : body),
    update,
    warn,
    refused(/** @type {string} */ _kind, /** @type {string} */ reason) {
      if (!form) return;
      find(".error", form).textContent = reason;
      find("input", form).focus();
    },
  };
}
