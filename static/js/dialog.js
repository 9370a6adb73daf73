// Asks a question in a <dialog> and gives true for the answer "yes". Esc is the safe answer.

/** @type {Map<HTMLDialogElement, () => void>} by dialog: gives the answer to the question that it still asks */
const settles = new Map();

/**
 * @param {HTMLDialogElement} dialog
 * @returns {Promise<boolean>}
 */
export function ask(dialog) {
  settles.get(dialog)?.();
  return new Promise((resolve) => {
    const settle = () => {
      settles.delete(dialog);
      dialog.removeEventListener("close", closed);
      resolve(dialog.returnValue === "yes");
    };
    // The close event comes a little after the closing, and may find the dialog open for the next question.
    const closed = () => dialog.open || settle();
    settles.set(dialog, settle);
    dialog.returnValue = "";
    dialog.addEventListener("close", closed);
    dialog.showModal();
  });
}
