/**
 * Asks, and asks again while there is no answer: behind a balancer the next question may come to another server. The first
 * answer counts, whatever it says.
 * @param ask makes a question, and answers with a promise that rejects when nobody answers
 * @param pauses milliseconds from each question to the next one, of which there are as many as pauses
 * @param late called with each answer that comes after the first one
 * @throws what the last question to fail threw, when all have
 */
export function hedged(ask, pauses, late = () => {}) {
  return new Promise((resolve, reject) => {
    let open = 0;
    let answered = false;
    let timer;
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
