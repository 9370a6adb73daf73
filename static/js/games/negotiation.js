// Deal or No Deal: the offer, what it is worth, and where each thing on the table would go.

import { ask } from "../dialog.js";
import { moves } from "../state.js";
import { stored } from "../store.js";
import { t, tn } from "../words.js";

const KINDS = ["book", "hat", "ball"];
const PLAN = t("Plan it now, make it on your turn. Your partner cannot see it, and it ends the talking.");
const FIRST = t("Say something first: offers come after at least one message. You can plan yours already.");
const READY = t("Your partner cannot see it. It is final and ends the talking.");
const ANSWER = t("This is final. Everything must be shared out between your offer and your partner’s.");
const HIDDEN = t("Your partner has made an offer. It stays hidden until you make yours. If the two fit together, it is a deal.");
const NEVER_SHOWN = t("Your partner made an offer. The game ended before it was shown.");
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

const AMOUNTS = {
  book: (count) => tn("%(num)s book", "%(num)s books", count),
  hat: (count) => tn("%(num)s hat", "%(num)s hats", count),
  ball: (count) => tn("%(num)s ball", "%(num)s balls", count),
};
const amount = (count, kind) => AMOUNTS[kind](count).replaceAll(" ", "\u00a0");

function things(share) {
  const named = KINDS.filter((kind) => share[kind]).map((kind) => amount(share[kind], kind));
  if (named.length === 0) return t("nothing");
  return named.length === 1 ? named[0] : t("%(some)s and %(last)s", { some: named.slice(0, -1).join(", "), last: named.at(-1) });
}

// The share that a proposal's text asks for. The rules let nothing else than this form through.
function shareOf(text) {
  const numbers = text.slice(text.indexOf("(")).match(/\d+/g).map(Number);
  return Object.fromEntries(KINDS.map((kind, index) => [kind, numbers[index]]));
}

// Marks of the game's own language that a person writes are words like any others, so they are sent in brackets that
// only look alike, and shown as they were written.
const MARKS = /\[(message|propose|end)\]/giu;
const asWords = (body) => body.replace(MARKS, "［$1］");
const asWritten = (text) => text.replaceAll("［", "[").replaceAll("］", "]");

function words(entry, over) {
  if (entry.kind === "message") return { text: asWritten(entry.text.replace(/^\s*\[message\]\s*/i, "")), aside: false };
  if (entry.kind !== "proposal") return { text: entry.text ?? "", aside: true };
  if (entry.text === null) return { text: over ? NEVER_SHOWN : HIDDEN, aside: true };
  const asked = { things: things(shareOf(entry.text)) };
  return {
    text: entry.by === "you" ? t("You made your offer: %(things)s for you.", asked) : t("Your partner made an offer: %(things)s for them.", asked),
    aside: true,
  };
}

function compose(kind, body) {
  if (kind === "message") return `[message] ${asWords(body)}`;
  return `[propose] (${body.book} books, ${body.hat} hats, ${body.ball} balls)`;
}

const proposals = (view) => moves(view).filter((move) => move.kind === "proposal");

function turn(view) {
  if (proposals(view).length > 0) return `${view.to_move} offer`;
  return view.to_move === "you" && view.ply === 0 ? "you first" : view.to_move;
}

export default function negotiation(page) {
  const form = document.getElementById("offer");
  const details = form.querySelector("details");
  const summary = form.querySelector("summary");
  const button = form.querySelector("[type=submit]");
  const hint = document.getElementById("offer-hint");
  const error = document.getElementById("offer-error");
  const dialog = document.getElementById("offer-dialog");
  const row = (kind) => form.querySelector(`[data-kind=${kind}]`);
  const field = (kind) => document.getElementById(`take-${kind}`);
  const plan = stored(page.view().match, "offer");
  const { counts } = page.view().facts;
  const { values } = page.view().secret;
  let answering = null;

  const wanted = () => Object.fromEntries(KINDS.map((kind) => [kind, Number(field(kind).value) || 0]));
  const worth = (share) => KINDS.reduce((sum, kind) => sum + share[kind] * values[kind], 0);
  const rest = (share) => Object.fromEntries(KINDS.map((kind) => [kind, counts[kind] - share[kind]]));

  function set(kind, count) {
    const whole = Math.min(counts[kind], Math.max(0, Math.trunc(count) || 0));
    field(kind).value = whole;
    error.textContent = "";
    draw();
    plan.write(wanted());
  }

  function draw() {
    const share = wanted();
    const made = proposals(page.view()).some((move) => move.by === "you");
    for (const kind of KINDS) {
      const [fewer, more] = row(kind).querySelectorAll("button");
      fewer.setAttribute("aria-disabled", made || share[kind] === 0);
      more.setAttribute("aria-disabled", made || share[kind] === counts[kind]);
      field(kind).readOnly = made;
      const left = counts[kind] - share[kind];
      document.getElementById(`rest-${kind}`).textContent = left
        ? t("%(count)s to your partner", { count: left })
        : t("none to your partner");
      page.main.querySelectorAll(`.item[data-kind=${kind}] .piece`).forEach((piece, index) => {
        piece.classList.toggle("to-you", index < share[kind]);
        piece.classList.toggle("to-partner", index >= share[kind]);
      });
    }
    const counter = form.querySelector("#offer-sum .counter");
    if (counter.textContent !== String(worth(share))) counter.textContent = worth(share);
  }

  function drawButton(view) {
    const made = proposals(view).some((move) => move.by === "you");
    const ready = page.waiting("proposal") === null;
    button.hidden = made;
    if (ready) button.removeAttribute("aria-disabled");
    else button.setAttribute("aria-disabled", "true");
    hint.textContent = made ? MADE : ready ? (answering ? ANSWER : READY) : view.ply === 0 && view.to_move === "you" ? FIRST : PLAN;
  }

  function update(view) {
    const now = view.status === "playing" && view.to_move === "you" && proposals(view).length > 0;
    const surprised = now && answering === false;
    answering = now;
    const made = proposals(view).find((move) => move.by === "you");
    if (made) for (const [kind, count] of Object.entries(shareOf(made.text))) field(kind).value = count;
    draw();
    drawButton(view);
    if (now) details.open = true;
    if (surprised && !document.querySelector("dialog[open]")) row("book").querySelector("button").focus();
  }

  async function offer() {
    if (page.waiting("proposal") !== null) return;
    const share = wanted();
    const points = tn("%(points)s point", "%(points)s points", worth(share), { points: worth(share) });
    document.getElementById("offer-words").textContent = t(
      "You ask for %(things)s, worth %(points)s to you. That leaves your partner %(rest)s. An offer is final.",
      { things: things(share), points, rest: things(rest(share)) },
    );
    if (!(await ask(dialog))) return;
    if (page.waiting("proposal") === null) page.send("proposal", share);
    drawButton(page.view());
  }

  for (const kind of KINDS) {
    for (const step of row(kind).querySelectorAll("button")) {
      step.addEventListener("click", () => {
        if (step.getAttribute("aria-disabled") === "true") return;
        set(kind, Number(field(kind).value) + Number(step.dataset.step));
      });
    }
    field(kind).addEventListener("input", () => field(kind).value !== "" && set(kind, Number(field(kind).value)));
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
  for (const [kind, count] of Object.entries(plan.read() ?? {})) if (counts[kind] >= count) field(kind).value = count;

  return {
    refusals: REFUSALS,
    words: (entry) => words(entry, page.view().status === "over"),
    compose,
    warn: (text) => (/\[propose\]/iu.test(text) ? IN_WORDS : null),
    turn,
    update,
    talking: (view) => proposals(view).length === 0,
    refused(kind, reason) {
      details.open = true;
      error.textContent = reason;
      row("book").querySelector("button").focus();
    },
  };
}
