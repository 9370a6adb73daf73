// A short sound when it is your turn and when the game ends: off until it is switched on, and remembered in this browser.

const KEY = "parlor/sound";
const TONES = [587, 784]; // Hz, one after the other
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

/**
 * Gives the function that plays it, if it is on.
 *
 * @param {HTMLElement} button
 */
export function soundSwitch(button) {
  let on = remembered();
  /** @type {AudioContext | null} */
  let audio = null;

  function show() {
    button.ariaPressed = String(on);
  }

  function play() {
    if (!on) return;
    audio ??= new AudioContext();
    const { currentTime, destination } = audio;
    // A browser lets a page be heard only after it was touched; until then this waits, and an old chime is dropped.
    if (audio.state === "suspended") audio.resume();
    for (const [number, frequency] of TONES.entries()) {
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

  button.addEventListener("click", () => {
    on = !on;
    remember(on);
    show();
    play(); // so that one knows what to listen for
  });
  show();
  return play;
}
