/**
 * Settles as a promise does. A signal that aborts before that ends what the promise stands for, by `end`, which makes it settle
 * soon, and closes whatever it has opened.
 */
export async function endedBy<T>(signal: AbortSignal, end: () => void, opening: Promise<T>): Promise<T> {
  signal.addEventListener('abort', end, { once: true });
  if (signal.aborted) end();
  try {
    return await opening;
  } finally {
    signal.removeEventListener('abort', end);
  }
}
