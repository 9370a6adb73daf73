// A short sound when it is your turn, when time runs out and when the game ends: off until it is switched on, and remembered in this browser.

const KEY = "parlor/sound";
const TONES = [587, 784]; // Hz, one after the other
const ALARM = [784, 587, 784]; // the same of a warning
const LENGTH = 0.14; // seconds of each

function remembered() {
  try {
    return localStorage.getItem(KEY) === "on";
  } catch {
    return false;
  }
}

/** @param {boolean} on */
function remember(on) {
  try {
    localStorage.setItem(KEY, on ? "on" : "off");
  } catch {
    // Without storage the choice is good for this page.
  }
}

let on = remembered();
/** @type {AudioContext | null} */
let audio = null;

/** @param {number[]} tones - Hz */
function play(tones) {
  if (!on) return;
  audio ??= new AudioContext();
  const { currentTime, destination } = audio;
  // A browser lets a page be heard only after it was touched; until then this waits, and an old chime is dropped.
  if (audio.state === "suspended") audio.resume();
  for (const [number, frequency] of tones.entries()) {
    const start = currentTime + number * LENGTH;
    const tone = audio.createOscillator();
    const volume = audio.createGain();
    tone.frequency.value = frequency;
    volume.gain.setValueAtTime(0.0001, start);
    volume.gain.exponentialRampToValueAtTime(0.12, start + 0.02);
    volume.gain.exponentialRampToValueAtTime(0.0001, start + LENGTH);
    tone.connect(volume).connect(destination);
    tone.start(start);
    tone.stop(start + LENGTH);
  }
}

/** It is your turn, or the game has ended. */
export function chime() {
  play(TONES);
}

/** Time runs out. */
export function alarm() {
  play(ALARM);
}

/**
 * Makes a button switch the sound.
 *
 * @param {HTMLElement} button
 */
export function soundSwitch(button) {
  function show() {
    button.ariaPressed = String(on);
  }

  button.addEventListener("click", () => {
    on = !on;
    remember(on);
    show();
    chime(); // so that one knows what to listen for
  });
  show();
}
