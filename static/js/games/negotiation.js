// Deal or No Deal: the offer, what it is worth, and where each thing on the table would go.

import { ask } from "../dialog.js";
import { find, findAll } from "../dom.js";
import { stored } from "../store.js";
import { t, tn } from "../words.js";
import { compose, KINDS, proposals, shareBy, shareOf, things, turn, words } from "./offers.js";

/**
 * @typedef {import("./offers.js").Kind} Kind
 * @typedef {import("./offers.js").Share} Share
 * @typedef {import("../state.js").View} View
 */

const PLAN = t("Plan it now, make it on your turn. Your partner cannot see it, and it ends the talking.");
const FIRST = t("Say something first: offers come after at least one message. You can plan yours already.");
const READY = t("Your partner cannot see it. It is final and ends the talking.");
const ANSWER = t("This is final. Everything must be shared out between your offer and your partner’s.");
const IN_WORDS = t("An offer is made with “Your offer” on this page. Send this again if you only want to say it.");
const MADE = t("Your offer is made. It stays hidden until your partner makes theirs.");
// For readers of other languages, by the code of the refusal; in English the server says more exactly what is wrong.
const REFUSALS = {
  talking_is_over: t("Your partner has made an offer, so the talking is over: make yours."),
  too_early: FIRST,
  too_many: t("That is more than there is on the table. Please take less."),
  grammar: t("An offer has three whole numbers. Please make it with “Your offer” on this page."),
  no_prefix: t("That is neither a message nor an offer. Please write it again, in other words."),
  two_prefixes: t("Please make one move at a time: a message or an offer."),
};
const WIDE = matchMedia("(min-width: 60rem)");
const PHONE = matchMedia("(max-width: 39.99rem)");

/** @param {import("../match.js").Page} page */
export default function negotiation(page) {
  const form = find("#offer");
  const details = find("details", form, HTMLDetailsElement);
  const summary = find("summary", form);
  const button = find("[type=submit]", form);
  const hint = find("#offer-hint");
  const error = find("#offer-error");
  const dialog = find("#offer-dialog", document, HTMLDialogElement);
  const row = (/** @type {Kind} */ kind) => find(`[data-kind=${kind}]`, form);
  const field = (/** @type {Kind} */ kind) => find(`#take-${kind}`, document, HTMLInputElement);
  const plan = stored(page.view().match, "offer");
  /** @type {Share} */
  const counts = page.view().facts.counts;
  /** @type {Share} */
  const values = page.view().secret.values;
  /** @type {boolean | null} whether the partner's offer waits for this seat's; null before the first view */
  let answering = null;

  const wanted = () => shareBy((kind) => Number(field(kind).value) || 0);
  const worth = (/** @type {Share} */ share) => KINDS.reduce((sum, kind) => sum + share[kind] * values[kind], 0);
  const rest = (/** @type {Share} */ share) => shareBy((kind) => counts[kind] - share[kind]);

  /**
   * @param {Kind} kind
   * @param {number} count
   */
  function set(kind, count) {
    const whole = Math.min(counts[kind], Math.max(0, Math.trunc(count) || 0));
    field(kind).value = String(whole);
    error.textContent = "";
    draw();
    plan.write(wanted());
  }

  function draw() {
    const share = wanted();
    const made = proposals(page.view()).some((move) => move.by === "you");
    for (const kind of KINDS) {
      const [fewer, more] = row(kind).querySelectorAll("button");
      fewer.setAttribute("aria-disabled", String(made || share[kind] === 0));
      more.setAttribute("aria-disabled", String(made || share[kind] === counts[kind]));
      field(kind).readOnly = made;
      const left = counts[kind] - share[kind];
      find(`#rest-${kind}`).textContent = left
        ? t("%(count)s to your partner", { count: left })
        : t("none to your partner");
      page.main.querySelectorAll(`.item[data-kind=${kind}] .piece`).forEach((piece, index) => {
        piece.classList.toggle("to-you", index < share[kind]);
        piece.classList.toggle("to-partner", index >= share[kind]);
      });
    }
    const counter = find("#offer-sum .counter", form);
    const sum = String(worth(share));
    if (counter.textContent !== sum) counter.textContent = sum;
  }

  /** @param {View} view */
  function drawButton(view) {
    const made = proposals(view).some((move) => move.by === "you");
    const ready = page.waiting("proposal") === null;
    const left = made && document.activeElement === button;
    button.hidden = made;
    if (left) field("book").focus(); // which shows what was offered; else the keys would be nowhere
    if (ready) button.removeAttribute("aria-disabled");
    else button.setAttribute("aria-disabled", "true");
    hint.textContent = made ? MADE : ready ? (answering ? ANSWER : READY) : view.ply === 0 && view.to_move === "you" ? FIRST : PLAN;
  }

  /** @param {View} view */
  function update(view) {
    const now = view.status === "playing" && view.to_move === "you" && proposals(view).length > 0;
    const surprised = now && answering === false;
    answering = now;
    const made = proposals(view).find((move) => move.by === "you");
    if (made) {
      const share = shareOf(made.text ?? "");
      for (const kind of KINDS) field(kind).value = String(share[kind]);
    }
    draw();
    drawButton(view);
    if (now) details.open = true;
    if (surprised && !document.querySelector("dialog[open]")) find("button", row("book")).focus();
  }

  async function offer() {
    if (page.waiting("proposal") !== null) return;
    const share = wanted();
    const points = tn("%(points)s point", "%(points)s points", worth(share), { points: worth(share) });
    find("#offer-words").textContent = t(
      "You ask for %(things)s, worth %(points)s to you. That leaves your partner %(rest)s. An offer is final.",
      { things: things(share), points, rest: things(rest(share)) },
    );
    if (!(await ask(dialog))) return;
    if (page.waiting("proposal") === null) page.send("proposal", share);
    drawButton(page.view());
  }

  for (const kind of KINDS) {
    for (const step of findAll("button", row(kind))) {
      step.addEventListener("click", () => {
        if (step.getAttribute("aria-disabled") === "true") return;
        set(kind, Number(field(kind).value) + Number(step.dataset.step));
      });
    }
    field(kind).addEventListener("input", () => {
      if (field(kind).value !== "") set(kind, Number(field(kind).value));
    });
    field(kind).addEventListener("change", () => set(kind, Number(field(kind).value)));
  }
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    offer();
  });

  // On a phone the offer starts closed so that the conversation has the room; on a desktop it is always open.
  function fit() {
    if (WIDE.matches) details.open = true;
    summary.tabIndex = WIDE.matches ? -1 : 0;
  }
  summary.addEventListener("click", (event) => WIDE.matches && event.preventDefault());
  WIDE.addEventListener("change", fit);
  if (PHONE.matches) details.open = false;
  fit();
  /** @type {Partial<Share>} */
  const planned = plan.read() ?? {};
  for (const kind of KINDS) {
    const count = planned[kind];
    if (count !== undefined && counts[kind] >= count) field(kind).value = String(count);
  }

  return {
    refusals: REFUSALS,
    words: (/** @type {import("../state.js").Entry} */ entry) => words(entry, page.view().status === "over"),
    compose,
    warn: (/** @type {string} */ text) => (/\[propose\]/iu.test(text) ? IN_WORDS : null),
    turn,
    update,
    talking: (/** @type {View} */ view) => proposals(view).length === 0,
    refused(/** @type {string} */ _kind, /** @type {string} */ reason) {
      details.open = true;
      error.textContent = reason;
      find("button", row("book")).focus();
    },
  };
}
