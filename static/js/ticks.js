// Calls twice a second, in a hidden tab too.

/**
 * Gives the function that stops it.
 *
 * @param {() => void} callback
 * @returns {() => void}
 */
export function ticking(callback) {
  let timer = 0;
  const slow = () => {
    timer ||= setInterval(callback, 500);
  };
  try {
    const worker = new Worker(new URL("./ticker.js", import.meta.url));
    worker.addEventListener("message", callback);
    worker.addEventListener("error", slow);
    return () => {
      worker.terminate();
      clearInterval(timer);
    };
  } catch {
    slow(); // a browser that forbids workers
    return () => clearInterval(timer);
  }
}
