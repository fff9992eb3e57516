/**
 * Sends a request, and sends it again while there is no answer: behind a load balancer the next one may reach another server.
 * The first answer counts, whatever its status.
 * @template T
 * @param {() => Promise<T>} ask sends one request; rejects when no server answers
 * @param {readonly number[]} pauses milliseconds before each further request
 * @param {(answer: T) => void} [late] called with each answer after the first one
 * @returns {Promise<T>}
 * @throws the error of the last request to fail, when all have
 */
export function hedged(ask, pauses, late = () => {}) {
  return new Promise((resolve, reject) => {
    let open = 0;
    let answered = false;
    /** @type {number | undefined} */
    let timer;
    /** @param {number} index */
    const next = (index) => {
      open++;
      if (index < pauses.length) timer = setTimeout(next, pauses[index], index + 1);
      ask().then(
        (answer) => {
          if (answered) return late(answer);
          answered = true;
          clearTimeout(timer);
          resolve(answer);
        },
        (error) => {
          if (--open > 0 || answered) return;
          clearTimeout(timer);
          reject(error);
        },
      );
    };
    next(0);
  });
}
